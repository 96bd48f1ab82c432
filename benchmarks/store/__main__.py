"""The letter store at up to a million letters, and what a letter costs on its way in and back."""

import argparse
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import markdown
from benchmarks.measure import machine
from benchmarks.runs import ROOT, InFiles, run_apart, run_interleaved
from benchmarks.store import copying
from benchmarks.store.load import longest_fill
from benchmarks.store.report import report

SIZES = (1_000, 100_000, 1_000_000)
REPEATS = 5
ASKED = 100


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 100,000 letters, fewer repeats")
    parser.add_argument("--only", choices=["reading", "copying"], help="measure one half only")
    given = parser.parse_args()
    sizes = SIZES[:-1] if given.quick else SIZES
    repeats = 2 if given.quick else REPEATS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        filled, times = ({}, {}) if given.only == "copying" else _read(folder, sizes)
        cases = [] if given.only == "reading" else copying.cases(5_000 if given.quick else 20_000)
        samples = run_interleaved(cases, repeats=repeats, run=InFiles(folder), told=_tell)
        text = report(times, samples, filled=filled, conditions=_conditions(folder, repeats=repeats))
    print(text)
    if not given.quick and given.only is None:
        markdown.write_section(ROOT / "docs" / "benchmarks.md", "Letter store", text)


def _read(folder: Path, sizes: Sequence[int]) -> tuple[dict[int, Any], dict[int, Any]]:
    paths = [str(folder / f"letters-{size}.db") for size in sizes]
    filled = {}
    for path, size in zip(paths, sizes, strict=True):
        _tell(f"filling {size:,}")
        taken = run_apart("benchmarks.store.reading:fill", longest=longest_fill(size), place=path, size=size)
        filled[size] = {**taken, "bytes": Path(path).stat().st_size / size}
    _tell("asking")
    times = run_apart("benchmarks.store.reading:ask", paths=paths, sizes=list(sizes), repeats=ASKED)
    return filled, dict(zip(sizes, times, strict=True))


def _conditions(folder: Path, *, repeats: int) -> str:
    return (
        f"`make bench-store`, {repeats} repeats, every question asked {ASKED} times, the sizes by turns. "
        f"{machine(folder)}, SQLite {sqlite3.sqlite_version}, SQLAlchemy {version('sqlalchemy')}, Redrive "
        f"{version('redrive')}. WAL mode with `synchronous = FULL`; payloads of 200 bytes, 8 queues, 24 types, "
        "200 incidents, 720 hours, a tenth of the letters resolved. The bare loop reads 500 entries, inserts two rows "
        "each by one executemany, commits and removes the entries: no tallies, no indexes but on the letter's id, no "
        "search, no audit. Ours decodes each letter, and has all of that. Garbage is "
        "collected as in `redrive serve`, on both sides."
    )


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
