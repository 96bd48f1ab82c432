"""`python -m tests.crash`: the long form, run after run until the messages or the minutes are spent; then ways back."""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.crash.adapter import Adapter
from tests.crash.campaign import Result, everywhere, run
from tests.crash.checker import Verdict
from tests.crash.kafka import kafka
from tests.crash.nats import nats_server
from tests.crash.rabbitmq import rabbitmq
from tests.crash.redis import redis
from tests.crash.report import return_table, table
from tests.crash.scenario import Scenario
from tests.crash.sqlite import sqlite
from tests.crash.way_back import Result as WayBackResult
from tests.crash.way_back import run as run_way_back
from tests.servers.install import Unavailable

OURS = ("sqlite", "redis", "kafka", "rabbitmq")  # begun anew for each run
A_RUN = 2400  # messages
A_WAY_BACK = Scenario(messages=10_000, kills=5)  # letters, and how often each of their processes is killed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument(
        "--broker",
        default="sqlite",
        help="sqlite, redis, kafka, rabbitmq, or the URL of an empty broker (default: %(default)s)",
    )
    parser.add_argument("--messages", type=int, default=10 * A_RUN, help=f"in runs of {A_RUN} (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=60, help="start no run after so long (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the next one has the next")
    parser.add_argument("--kills", type=int, default=30, help="at random, in each run (default: %(default)s)")
    parser.add_argument("--ways-back", type=int, default=1, help="of 10,000 letters (default: %(default)s)")
    given = parser.parse_args()
    results: list[Result] = []
    ways_back: list[WayBackResult] = []
    end = time.monotonic() + given.minutes * 60
    left = given.messages
    is_clean = True  # what is left at a given URL would be a phantom of the next run
    while is_clean and left > 0 and (not results or time.monotonic() < end):
        scenario = Scenario(seed=given.seed + len(results), messages=min(left, A_RUN), kills=given.kills)
        results.append(_one_run(scenario, broker=given.broker))
        left -= scenario.messages
        is_clean = given.broker in OURS or not results[-1].verdict.red
    while is_clean and len(ways_back) < given.ways_back:
        ways_back.append(_one_way_back(replace(A_WAY_BACK, seed=given.seed + len(ways_back)), broker=given.broker))
    if results:
        print("", table(results), sep="\n")
    if ways_back:
        print("", return_table(ways_back), sep="\n")
    verdicts = [*(one.verdict for one in results), *(one.verdict for one in ways_back)]
    return 1 if any(verdict.red for verdict in verdicts) else 0


def _one_run(scenario: Scenario, *, broker: str) -> Result:
    folder = _folder()
    with _adapter(broker, folder, seed=scenario.seed) as adapter:
        result = asyncio.run(run(everywhere(scenario, adapter), adapter=adapter, folder=folder))
    _tell(f"seed {scenario.seed}", result.verdict, folder, seconds=result.seconds)
    return result


def _one_way_back(scenario: Scenario, *, broker: str) -> WayBackResult:
    folder = _folder()
    with _adapter(broker, folder, seed=scenario.seed) as adapter:
        adapter.calm()  # a bad network is not part of it
        result = asyncio.run(run_way_back(scenario, adapter=adapter, folder=folder))
    _tell(f"way back, seed {scenario.seed}", result.verdict, folder, seconds=result.seconds)
    return result


def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="redrive-crash-"))


@contextmanager
def _adapter(broker: str, folder: Path, *, seed: int) -> Iterator[Adapter]:
    if broker == "sqlite":
        yield sqlite(folder / "queue.db")
    elif broker == "redis":
        with redis(folder / "redis", seed=seed) as adapter:
            yield adapter
    elif broker == "kafka":
        with kafka(folder / "kafka") as adapter:
            yield adapter
    elif broker == "nats":
        with nats_server(folder / "nats", seed=seed) as adapter:
            yield adapter
    elif broker == "rabbitmq":
        with rabbitmq(folder / "rabbitmq", seed=seed) as adapter:
            yield adapter
    else:
        yield Adapter(url=broker, version=broker)


def _tell(name: str, verdict: Verdict, folder: Path, *, seconds: float) -> None:
    if verdict.red:
        print(f"{name}: {', '.join(verdict.red)}; everything about it is in {folder}", flush=True)
    else:
        shutil.rmtree(folder)
        print(f"{name}: all zero after {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Unavailable as absence:
        sys.exit(str(absence))
