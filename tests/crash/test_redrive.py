"""The redriving process under kill -9: the short form, for every run of the tests."""

from dataclasses import replace
from pathlib import Path

from tests.crash.report import return_table
from tests.crash.scenario import Scenario
from tests.crash.sqlite import sqlite
from tests.crash.way_back import run
from tests.crash.way_back_redriver import FORGETFUL, SENT

SHORT = Scenario(messages=1000, kills=2)


async def test_every_letter_is_resolved_exactly_once_whoever_is_killed_on_the_way(tmp_path: Path) -> None:
    result = await run(SHORT, adapter=sqlite(tmp_path / "queue.db"), folder=tmp_path)
    print(return_table([result]))

    assert result.verdict.red == [], f"{return_table([result])}\n{result.stderr}"
    assert result.verdict.shown["resolved"] == 1000
    assert result.verdict.shown["redriven messages"] == 1000


async def test_a_broker_that_forgets_what_it_sent_back_turns_the_count_red(tmp_path: Path) -> None:
    scenario = replace(SHORT, messages=60, kills=0, bug=FORGETFUL)

    result = await run(scenario, adapter=sqlite(tmp_path / "queue.db"), folder=tmp_path, points=[SENT])

    assert "published twice" in result.verdict.red, return_table([result])
