"""The NATS broker under the crash harness: the short form. It has a command of its own, `make crash-nats`.

It has not been seen to end within its time on a busy machine, and what was left of its last run had one innocent among
the dead, a slow message that ran alone and lost its lease. Until it is green it cannot be a gate for others.
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

SHORT = Scenario(messages=5200, kills=16, lease=2.0)


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
