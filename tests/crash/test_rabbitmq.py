"""RabbitMQ under the crash harness: the short form. It takes several minutes: `make crash-rabbitmq` runs it."""

import os
from pathlib import Path

import pytest

from tests.crash.campaign import everywhere, run
from tests.crash.rabbitmq import rabbitmq
from tests.crash.report import return_table, table
from tests.crash.scenario import Scenario
from tests.crash.way_back import run as run_way_back

pytestmark = pytest.mark.skipif("REDRIVE_CRASH_RABBITMQ" not in os.environ, reason="make crash-rabbitmq runs it")

SHORT = Scenario(messages=5200, kills=12, lease=4.0, concurrency=16, prefetch=16, processes=4)
LIMIT = 900.0  # seconds for each phase: a server that confirms every copy takes its time where others work too


async def test_every_message_is_accounted_for_whoever_is_killed_and_whatever_is_cut(tmp_path: Path) -> None:
    with rabbitmq(tmp_path / "rabbitmq") as adapter:
        result = await run(everywhere(SHORT, adapter), adapter=adapter, folder=tmp_path, limit=LIMIT)
    print(table([result]))

    assert result.verdict.red == [], f"{table([result])}\n{result.stderr}"
    assert result.verdict.shown["acknowledged"] >= 5000
    assert result.verdict.shown["fenced"] > 0


async def test_every_letter_is_resolved_exactly_once_whoever_is_killed_on_the_way(tmp_path: Path) -> None:
    with rabbitmq(tmp_path / "rabbitmq", cut=0.0) as adapter:
        result = await run_way_back(Scenario(messages=300, kills=2), adapter=adapter, folder=tmp_path)
    print(return_table([result]))

    assert result.verdict.red == [], f"{return_table([result])}\n{result.stderr}"
    assert result.verdict.shown["resolved"] == 300
