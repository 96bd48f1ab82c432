"""The NATS broker under the crash harness: the short form. It has a command of its own, `make crash-nats`.

It takes minutes of two processors, more than every run of the tests should. Its controls, which are as many small
crash runs, are among the tests that always run.
"""

import os
from pathlib import Path

import pytest

from tests.crash.campaign import everywhere, run
from tests.crash.nats import nats_server
from tests.crash.report import return_table, table
from tests.crash.scenario import Scenario
from tests.crash.way_back import run as run_way_back

pytestmark = pytest.mark.skipif("REDRIVE_CRASH_NATS" not in os.environ, reason="make crash-nats runs it")

SHORT = Scenario(messages=5400, kills=16, lease=3.0)


async def test_every_message_is_accounted_for_whoever_is_killed_and_whatever_is_cut(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats") as adapter:
        result = await run(everywhere(SHORT, adapter), adapter=adapter, folder=tmp_path)
    print(table([result]))

    assert result.verdict.red == [], f"{table([result])}\n{result.stderr}"
    assert result.verdict.shown["acknowledged"] >= 5000
    assert result.verdict.shown["fenced"] > 0


async def test_every_letter_is_resolved_exactly_once_whoever_is_killed_on_the_way(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats", cut=0.0) as adapter:
        result = await run_way_back(Scenario(messages=300, kills=2), adapter=adapter, folder=tmp_path)
    print(return_table([result]))

    assert result.verdict.red == [], f"{return_table([result])}\n{result.stderr}"
    assert result.verdict.shown["resolved"] == 300
