"""The SQLite broker beside a loop written by hand, and on request beside other queues on SQLite."""

import argparse
import importlib.util
import sqlite3
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from benchmarks import markdown
from benchmarks.measure import machine
from benchmarks.peers import Peers, install
from benchmarks.runs import ROOT, InFiles, run_interleaved
from benchmarks.sqlite.cases import cases, waiting
from benchmarks.sqlite.peers import PEERS
from benchmarks.sqlite.report import report

REPEATS = 9


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sqlite", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages, three repeats")
    parser.add_argument("--scale", type=float, help="the share of the messages, if neither 1 nor a tenth")
    parser.add_argument("--repeats", type=int, help=f"how often each case is run, if not {REPEATS} times")
    parser.add_argument("--peers", action="store_true", help="measure other queues too; they are installed")
    given = parser.parse_args()
    scale = given.scale or (0.1 if given.quick else 1.0)
    repeats = given.repeats or (3 if given.quick else REPEATS)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peers = install(PEERS, scale=scale) if given.peers else Peers()
        measured = [*cases(scale), *peers.cases]
        samples = run_interleaved(measured, repeats=repeats, run=InFiles(folder), told=_tell)
        left_out = [*peers.missing, *(case.name for case in measured if case.name not in samples)]
        conditions = _conditions(folder, repeats=repeats, left_out=left_out)
    others = {peer.name: peer.settings for peer in PEERS if peer.name in samples}
    text = report(samples, conditions=conditions, waiting=waiting(scale), others=others)
    print(text)
    if scale == 1 and repeats >= REPEATS:
        markdown.write_section(ROOT / "docs" / "benchmarks.md", "SQLite", text)


def _conditions(folder: Path, *, repeats: int, left_out: list[str]) -> str:
    uvloop = f", uvloop {version('uvloop')}" if importlib.util.find_spec("uvloop") else ""
    text = (
        f"`make bench-sqlite`, {repeats} repeats. {machine(folder)}, SQLite {sqlite3.sqlite_version}, Redrive "
        f"{version('redrive')}{uvloop}. Every file in WAL mode with `synchronous = FULL`; payloads of 200 bytes; an "
        "empty `async` handler. Redrive works as in a process of `redrive worker`, with leases, heartbeat, breaker, "
        "metrics, and logs at the default level; the loop written by hand has a lease and an index on due."
    )
    return f"{text} Could not be installed or run: {', '.join(left_out)}." if left_out else text


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
