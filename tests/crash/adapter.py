"""What the harness must know about an adapter."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


def _nothing() -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """An adapter under test: a URL at which nothing has happened yet, and a few facts.

    `version` is shown in the report. `stage` (`module:function`) is called with the `Site` in every process before
    the broker is opened, to add points inside the adapter; `points` are their names. `faults` are things the nemesis
    may do to the system behind the adapter, such as killing a server. `outcomes` is the pattern of the outcomes
    queue. `leaks` tells what should not be left when everything is done.
    """

    url: str
    version: str
    stage: str = ""
    points: Sequence[str] = ()
    faults: Mapping[str, Callable[[], None]] = field(default_factory=dict)
    outcomes: str = "{queue}.outcomes"
    leaks: Callable[[], Sequence[str]] = _nothing
