"""The SQLite broker under the crash harness: the short form, for every run of the tests."""

from pathlib import Path

from tests.crash.campaign import everywhere, run
from tests.crash.report import table
from tests.crash.scenario import Scenario
from tests.crash.sqlite import sqlite


async def test_every_message_is_accounted_for_whoever_is_killed_and_wherever(tmp_path: Path) -> None:
    adapter = sqlite(tmp_path / "queue.db")

    result = await run(everywhere(Scenario(), adapter), adapter=adapter, folder=tmp_path)
    print(table([result]))

    assert result.verdict.red == [], f"{table([result])}\n{result.stderr}"
    assert result.verdict.shown["acknowledged"] >= 2000
    assert result.verdict.shown["fenced"] > 0
