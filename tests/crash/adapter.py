"""What the harness must know about an adapter."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


def _nothing() -> Sequence[str]:
    return ()


def _calm() -> Mapping[str, int]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """An adapter under test: a URL at which nothing has happened yet, and a few facts.

    `url` is for the processes of a run; `look_url`, if it has one, is for the harness, which looks past what the
    processes have to bear. `version` is shown in the report. `module` is called in the processes: `set_stage(site)`
    before the broker is opened, to add points and bugs inside the adapter, and `forget_returns(site)`, the planted
    bug of a way back. `points` are the names of those points. `faults` are things that the nemesis may do to the
    system behind the adapter, such as killing a server; `calm` ends those that go on by themselves, and tells how
    often each has struck. `leaks` tells what should not be left when everything is done. With `by_key`, a message may
    be in two places for a moment, and what has one key is one. Where it is known only from heartbeats what others have
    in hand, nothing is left once nothing was seen for `quiet` seconds.
    """

    url: str
    version: str
    look_url: str = ""
    module: str = ""
    points: Sequence[str] = ()
    faults: Mapping[str, Callable[[], None]] = field(default_factory=dict)
    calm: Callable[[], Mapping[str, int]] = _calm
    leaks: Callable[[], Sequence[str]] = _nothing
    by_key: bool = False
    quiet: float = 0.0
    comes_back: bool = False
