"""Negative controls: a harness that does not see a planted bug proves nothing about code without one."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash import bugs
from tests.crash.campaign import run
from tests.crash.plan import Fate
from tests.crash.report import table
from tests.crash.scenario import Scenario
from tests.crash.sqlite import sqlite

SHORT = Scenario(messages=200, kills=0, lease=1.0, mix={})

DEATHS = ["fetched, not started", "before an ack", "before a retry"]

CONTROLS = {
    "GoneAtFetch": ("lost", replace(SHORT, pause=0.05, points=["fetched, not started"])),
    "RetryInMemory": ("lost", replace(SHORT, points=["after a retry, before its answer"], mix={Fate.FLAKY: 0.3})),
    "DeliveriesAsAttempts": ("innocents", replace(SHORT, points=DEATHS, mix={Fate.FLAKY: 0.6})),
    "SuspectsInTheCrowd": ("innocents", replace(SHORT, messages=60, processes=1, pause=0.05, mix={Fate.KILLER: 0.01})),
    "LetterThenAck": ("duplicates", replace(SHORT, points=[bugs.BETWEEN], mix={Fate.PERMANENT: 0.1})),
    "NoFence": ("duplicates", replace(SHORT, stops=["before a give-up"], mix={Fate.PERMANENT: 0.3})),
    "TextOnly": ("altered", replace(SHORT, processes=1, mix={Fate.PERMANENT: 0.1})),
}


def test_every_planted_bug_has_a_control() -> None:
    assert CONTROLS.keys() == bugs.BUGS.keys()


@pytest.mark.parametrize("bug", CONTROLS)
async def test_a_planted_bug_turns_its_own_count_red(bug: str, tmp_path: Path) -> None:
    expected, scenario = CONTROLS[bug]

    result = await run(
        replace(scenario, bug=bug), adapter=sqlite(tmp_path / "queue.db"), folder=tmp_path, redrive=False
    )

    assert result.verdict.red == [expected], table([result])


async def test_the_same_run_without_a_bug_is_all_zero(tmp_path: Path) -> None:
    result = await run(
        replace(SHORT, points=DEATHS, stops=["before a give-up"], mix={Fate.FLAKY: 0.3, Fate.PERMANENT: 0.3}),
        adapter=sqlite(tmp_path / "queue.db"),
        folder=tmp_path,
        redrive=False,
    )

    assert result.verdict.red == [], table([result])
