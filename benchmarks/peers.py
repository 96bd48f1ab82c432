"""Other people's queues: each runs in a virtual environment of its own, and is named where it cannot be had."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.environments import NotInstallable, environment
from benchmarks.runs import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A queue of other people: what to install, how it was set up, and the programs that drive it.

    The first requirement pins the queue itself. The programs run in its environment: they must not import Redrive.
    """

    requirements: Sequence[str]
    settings: str
    fill: str
    drain: str
    messages: int
    arguments: Mapping[str, Any] = field(default_factory=dict)
    mode: str = ""

    @property
    def name(self) -> str:
        """`huey 3.5.4`, and the mode if there are several."""
        package, _, pinned = self.requirements[0].partition("==")
        return " ".join(filter(None, [package.partition("[")[0], pinned, self.mode]))


@dataclass(frozen=True, slots=True)
class Peers:
    """Cases of the peers that could be installed, and why the others could not, by name."""

    cases: Sequence[Case] = ()
    missing: Mapping[str, str] = field(default_factory=dict)


def install(peers: Sequence[Peer], *, scale: float) -> Peers:
    """Make the environments that are not there yet. A case is optional: a peer that fails is left out."""
    cases: list[Case] = []
    missing: dict[str, str] = {}
    for peer in peers:
        try:
            python = environment(peer.requirements)
        except NotInstallable as error:
            missing[peer.name] = str(error)
            continue
        sizes = {"messages": max(round(peer.messages * scale), 20)}
        cases.append(
            Case(
                name=peer.name,
                prepare=peer.fill,
                preparation=sizes,
                run=peer.drain,
                arguments={**sizes, **peer.arguments},
                python=python,
                optional=True,
            )
        )
    return Peers(cases, missing)
