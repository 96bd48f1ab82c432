"""The Kafka broker under the crash harness: the short form. It has a command of its own, `make crash-kafka`.

It takes minutes, too long to wait for in every run of all tests.
"""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.campaign import everywhere, run
from tests.crash.kafka import kafka
from tests.crash.report import return_table, table
from tests.crash.scenario import Scenario
from tests.crash.way_back import run as run_way_back

pytestmark = pytest.mark.skipif("REDRIVE_CRASH_KAFKA" not in os.environ, reason="make crash-kafka runs it")

SHORT = Scenario(messages=5200, kills=16, lease=2.0, concurrency=16, prefetch=16)


async def test_every_message_is_accounted_for_whoever_is_killed_and_whoever_joins(tmp_path: Path) -> None:
    with kafka(tmp_path / "kafka") as adapter:
        # Who stands still at a point goes on when its message runs elsewhere: alone, after all other suspects. One
        # worker stands still at random.
        scenario = replace(everywhere(SHORT, adapter), stops=())
        result = await run(scenario, adapter=adapter, folder=tmp_path)
    print(table([result]))

    assert result.verdict.red == [], f"{table([result])}\n{result.stderr}"
    assert result.verdict.shown["acknowledged"] >= 5000
    assert result.verdict.shown["fenced"] > 0


async def test_every_letter_is_resolved_exactly_once_whoever_is_killed_on_the_way(tmp_path: Path) -> None:
    with kafka(tmp_path / "kafka") as adapter:
        result = await run_way_back(Scenario(messages=150, kills=1), adapter=adapter, folder=tmp_path)
    print(return_table([result]))

    assert result.verdict.red == [], f"{return_table([result])}\n{result.stderr}"
    assert result.verdict.shown["resolved"] == 150
