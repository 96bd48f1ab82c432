"""What every benchmark of a broker does: run ours beside a loop by hand and beside peers, and write its section."""

import argparse
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Protocol

from benchmarks import markdown
from benchmarks.load import marked
from benchmarks.loops import LOOPS
from benchmarks.measure import Sample, machine, warm_up
from benchmarks.peers import Peer, install
from benchmarks.runs import ROOT, Case, Samples, run_interleaved

REPEATS = 9


class Server(Protocol):
    """Runs cases, each with its backlog and nothing else."""

    @property
    def version(self) -> str: ...

    def __call__(self, case: Case) -> Sample: ...


class Cases(Protocol):
    """The cases of these parts; `scale` 1 is the size that is written down."""

    def __call__(self, parts: Sequence[str], *, scale: float, loop: str) -> list[Case]: ...


class Report(Protocol):
    """The section. `peers` are the settings of peers by the name of their case."""

    def __call__(self, samples: Samples, *, conditions: str, peers: Mapping[str, str]) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A broker and what it is compared with.

    `peers` are asked for by parts and event loop, `server_is` by its version, and `report` by the scale.
    """

    name: str
    parts: Sequence[str]
    server: Callable[[], AbstractContextManager[Server]]
    cases: Cases
    peers: Callable[[Sequence[str], str], Sequence[Peer]]
    server_is: Callable[[str], str]
    work: str
    report: Callable[[float], Report]


def compare(comparison: Comparison, description: str | None) -> None:
    """Run it as the command line says. A run at full scale with all parts is kept in the document."""
    given = _given(comparison, description)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # as Ctrl-C does, so that the server is stopped too
    scale = given.scale or (0.1 if given.quick else 1.0)
    repeats = given.repeats or (3 if given.quick else REPEATS)
    wanted = comparison.peers(given.only, given.loop) if "peers" in given.only else []
    if wanted:
        _tell("making the environments of the peers that have none yet")
    peers = install(wanted, scale=scale)
    measured = [*comparison.cases(given.only, scale=scale, loop=given.loop), *peers.cases]
    with comparison.server() as server:
        conditions = _conditions(comparison, server.version, loop=given.loop, repeats=repeats)
        samples = run_interleaved(measured, repeats=repeats, run=server, told=_tell)
    left_out = [*peers.missing, *(case.name for case in measured if case.name not in samples)]
    if left_out:
        conditions += f" Could not be installed or run: {', '.join(left_out)}."
    settings = {peer.name: peer.settings for peer in wanted if peer.name in samples}
    text = comparison.report(scale)(samples, conditions=conditions, peers=settings)
    print(text)
    if scale == 1 and repeats >= REPEATS and {*given.only} == {*comparison.parts}:
        name = comparison.name if given.loop == LOOPS[0] else f"{comparison.name} on {given.loop}"
        markdown.write_section(ROOT / "docs" / "benchmarks.md", name, text)


def draining(package: str, name: str, program: str, messages: int, **arguments: Any) -> Case:
    """A program of a benchmark that works off a backlog in which nothing fails."""
    return Case(
        name=name,
        prepare=f"benchmarks.{package}.hand:fill",
        preparation={"messages": messages},
        run=f"benchmarks.{package}.{program}",
        arguments={"messages": messages, **arguments},
    )


def failing(package: str, name: str, program: str, messages: int, **arguments: Any) -> Case:
    """One that works off a backlog in which every tenth message fails, but for those that warm it up."""
    spared = warm_up(messages)  # so that what is measured has the same failures, whenever they are tried again
    return Case(
        name=name,
        prepare=f"benchmarks.{package}.hand:fill",
        preparation={"messages": messages, "spared": spared},
        run=f"benchmarks.{package}.{program}",
        arguments={"messages": messages, "dead": marked(messages, spared=spared), **arguments},
    )


def _given(comparison: Comparison, description: str | None) -> argparse.Namespace:
    parts = comparison.parts

    def some(text: str) -> Sequence[str]:
        names = text.split(",")
        if unknown := {*names} - {*parts}:
            raise argparse.ArgumentTypeError(f"expected some of {', '.join(parts)}; got {', '.join(sorted(unknown))}")
        return names

    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{comparison.name.lower()}", description=description)
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages, three repeats")
    parser.add_argument("--scale", type=float, help="the share of the messages, if neither 1 nor a tenth")
    parser.add_argument("--repeats", type=int, help=f"how often each case is run, if not {REPEATS} times")
    parser.add_argument("--loop", choices=LOOPS, default=LOOPS[0], help="the event loop of everything that has one")
    parser.add_argument("--only", type=some, default=parts, metavar="PARTS", help=f"of {','.join(parts)}")
    return parser.parse_args()


def _conditions(comparison: Comparison, server: str, *, loop: str, repeats: int) -> str:
    uvloop = f" {version('uvloop')}" if loop == "uvloop" else ""
    return (
        f"`make bench-{comparison.name.lower()}`, {repeats} repeats. {machine()}, {comparison.server_is(server)}, "
        f"Redrive {version('redrive')}; the event loop is {loop}{uvloop} wherever there is one. {comparison.work} "
        "Ratios are taken round by round."
    )


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
