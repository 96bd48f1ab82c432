"""`python -m tests.crash`: the long form, run after run until the messages or the minutes are spent; then ways back."""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from tests.crash.adapter import Adapter
from tests.crash.campaign import Result, everywhere, run
from tests.crash.report import return_table, table
from tests.crash.scenario import Scenario
from tests.crash.sqlite import sqlite
from tests.crash.way_back import Result as WayBackResult
from tests.crash.way_back import run as run_way_back

A_RUN = 2400  # messages
A_WAY_BACK = Scenario(messages=10_000, kills=5)  # letters, and how often their redriver is killed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--broker", default="sqlite", help="sqlite, or the URL of an empty broker (default: sqlite)")
    parser.add_argument("--messages", type=int, default=10 * A_RUN, help=f"in runs of {A_RUN} (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=60, help="start no run after so long (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the next one has the next")
    parser.add_argument("--kills", type=int, default=30, help="at random, in each run (default: %(default)s)")
    parser.add_argument("--ways-back", type=int, default=1, help="of 10,000 letters, on SQLite (default: %(default)s)")
    given = parser.parse_args()
    results: list[Result] = []
    end = time.monotonic() + given.minutes * 60
    left = given.messages
    while left > 0 and (not results or time.monotonic() < end):
        scenario = Scenario(seed=given.seed + len(results), messages=min(left, A_RUN), kills=given.kills)
        results.append(_one_run(scenario, broker=given.broker))
        left -= scenario.messages
        if results[-1].verdict.red and given.broker != "sqlite":
            break  # what is left there would be a phantom of the next run
    ways_back = [_one_way_back(replace(A_WAY_BACK, seed=given.seed + number)) for number in range(given.ways_back)]
    if results:
        print("", table(results), sep="\n")
    if ways_back:
        print("", return_table(ways_back), sep="\n")
    verdicts = [*(one.verdict for one in results), *(one.verdict for one in ways_back)]
    return 1 if any(verdict.red for verdict in verdicts) else 0


def _one_run(scenario: Scenario, *, broker: str) -> Result:
    folder = Path(tempfile.mkdtemp(prefix="redrive-crash-"))
    adapter = sqlite(folder / "queue.db") if broker == "sqlite" else Adapter(url=broker, version=broker)
    result = asyncio.run(run(everywhere(scenario, adapter), adapter=adapter, folder=folder))
    if result.verdict.red:
        print(f"seed {scenario.seed}: {', '.join(result.verdict.red)}; everything about it is in {folder}", flush=True)
    else:
        shutil.rmtree(folder)
        print(f"seed {scenario.seed}: all zero after {result.seconds:.0f} s", flush=True)
    return result


def _one_way_back(scenario: Scenario) -> WayBackResult:
    folder = Path(tempfile.mkdtemp(prefix="redrive-crash-"))
    result = asyncio.run(run_way_back(scenario, folder=folder))
    if result.verdict.red:
        print(f"way back, seed {scenario.seed}: {', '.join(result.verdict.red)}; it is all in {folder}", flush=True)
    else:
        shutil.rmtree(folder)
        print(f"way back, seed {scenario.seed}: all zero after {result.seconds:.0f} s", flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
