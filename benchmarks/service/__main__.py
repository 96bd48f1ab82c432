"""The service over HTTP at a million letters, and what a letter costs on its way in and back, by store."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import markdown
from benchmarks.measure import Sample, machine
from benchmarks.runs import ROOT, Case, Samples, run_apart, run_interleaved
from benchmarks.service import report
from benchmarks.service.first_view import first_views
from benchmarks.service.places import NAMES, Place, places
from benchmarks.service.questions import QUESTIONS
from benchmarks.service.serving import serving
from benchmarks.store import copying
from benchmarks.store.load import longest_fill

LETTERS = 1_000_000
COPIED = 20_000
ASKED = 100
VIEWS = 20
REPEATS = 3


def main() -> None:
    given = _given()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # as Ctrl-C does, so that the servers are stopped too
    letters = given.letters or (20_000 if given.quick else LETTERS)
    repeats = given.repeats or (2 if given.quick else REPEATS)
    to_keep = letters >= LETTERS and repeats >= REPEATS and not given.quick and {*given.stores} == {*NAMES}
    with tempfile.TemporaryDirectory() as name, places(given.stores, Path(name)) as stores:
        conditions = _conditions(stores, Path(name), repeats=repeats)
        if given.only != "copying":
            asked = 20 if given.quick else ASKED
            filled = {place.name: _fill(place, letters) for place in stores}
            samples = _ask(stores, Path(name), repeats=repeats, arguments={"size": letters, "asked": asked})
            said = f"{conditions} {_reading(letters, asked=asked)}"
            _show(
                "Service: reads", report.reads(samples, filled=filled, conditions=f"{said} {_LISTS}"), to_keep=to_keep
            )
            views = _look(stores, Path(name), looked=2 if given.quick else VIEWS)
            _show("Console: pages", report.pages(samples, views, conditions=said), to_keep=to_keep)
        if given.only != "reading":
            samples = _copy(stores, min(letters, 2_000 if given.quick else COPIED), repeats=repeats)
            text = report.copying(samples, conditions=f"{conditions} {_COPYING}")
            _show("Service: collecting and redriving", text, to_keep=to_keep)


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20,000 letters, fewer questions, two repeats")
    parser.add_argument("--letters", type=int, help=f"how many letters, if not {LETTERS:,}")
    parser.add_argument("--repeats", type=int, help=f"how often each case is run, if not {REPEATS} times")
    parser.add_argument("--only", choices=["reading", "copying"], help="measure one half only")
    parser.add_argument("--stores", type=_names, default=NAMES, metavar="STORES", help=f"of {','.join(NAMES)}")
    return parser.parse_args()


def _names(text: str) -> Sequence[str]:
    names = text.split(",")
    if unknown := {*names} - {*NAMES}:
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(NAMES)}; got {', '.join(sorted(unknown))}")
    return names


def _fill(place: Place, letters: int) -> Mapping[str, float]:
    _tell(f"filling {place.name} with {letters:,} letters")
    program = "benchmarks.store.reading:fill"
    taken = run_apart(program, longest=longest_fill(letters), place=place.letters, size=letters)
    return {**taken, "letters": letters, "bytes": place.settle()}


def _ask(stores: Sequence[Place], folder: Path, *, repeats: int, arguments: Mapping[str, Any]) -> Samples:
    """Each run has a service and a client of its own, for one of the reads."""
    homes: dict[str, Place] = {}
    cases = []
    for part, read in [(part, read) for part, reads in QUESTIONS.items() for read in reads]:
        for place in stores:
            name = report.name_of(part, read, store=place.name)
            homes[name] = place
            given = {"part": part, "read": read, **arguments}
            cases.append(Case(name=name, run="benchmarks.service.reading:ask", arguments=given))

    def ask(case: Case) -> Sample:
        place = homes[case.name]
        with serving(place.url, folder) as (url, process):
            answer = run_apart(case.run, url=url, service=process, server=place.server, **case.arguments)
        return Sample(**answer)

    return run_interleaved(cases, repeats=repeats, run=ask, told=_tell)


def _look(stores: Sequence[Place], folder: Path, *, looked: int) -> Mapping[str, Sequence[float]]:
    """The first views of visitors, by store."""
    views = {}
    for place in stores:
        with serving(place.url, folder) as (url, _):
            views[place.name] = first_views(url, looked=looked)
    return views


def _copy(stores: Sequence[Place], messages: int, *, repeats: int) -> Samples:
    """Each run has an empty store, and entries that wait in a file."""
    homes = {case.name: (case, place) for place in stores for case in copying.cases(messages, store=place.name)}
    cases = [case for case, _ in homes.values()]
    return run_interleaved(cases, repeats=repeats, run=lambda case: homes[case.name][1].copy(case), told=_tell)


def _conditions(stores: Sequence[Place], folder: Path, *, repeats: int) -> str:
    packages = filter(find_spec, ("asyncpg", "sqlalchemy", "fastapi", "uvicorn", "uvloop", "redrive"))
    versions = [*(place.version for place in stores), *(f"{name} {version(name)}" for name in packages)]
    return (
        f"`make bench-service`, {repeats} repeats. {machine(folder)}, {', '.join(versions)}. SQLite in WAL mode with "
        "`synchronous = FULL`; PostgreSQL on the same machine with the settings it comes with, `fsync` among them. "
        "Payloads of 200 bytes."
    )


def _reading(letters: int, *, asked: int) -> str:
    return (
        f"{letters:,} letters of 8 queues, 24 types of error, 5,000 users and 200 incidents, every tenth resolved; on "
        "PostgreSQL vacuumed after filling. `redrive serve` with collector, redriver and an idle broker answers one "
        f"client over loopback, in another process and on one connection: {asked} requests a run, each about another "
        "letter, timed to the last byte, every answer checked."
    )


_LISTS = (
    "A list is the newest 50 that are open or parked, with their payloads, masked; the time of a search includes the "
    "pages that were followed until it was found."
)


_COPYING = (
    "The bare loop reads 500 entries from a file, inserts two rows each by one executemany, commits and removes the "
    "entries, on the same driver and event loop: no tallies, no indexes but on the letter's id, no search, no audit. "
    "Ours decodes each letter, and has all of that. Garbage is collected as in `redrive serve`, on both "
    "sides. CPU is that of the process, and of the database's server where there is one; ratios are "
    "about both together, round by round."
)


def _show(section: str, text: str, *, to_keep: bool) -> None:
    print(f"## {section}\n\n{text}\n")
    if to_keep:
        markdown.write_section(ROOT / "docs" / "benchmarks.md", section, text)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
