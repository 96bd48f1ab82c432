"""Negative controls on NATS: a harness that does not see a planted bug proves nothing about code without one."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash import bugs, nats_bugs
from tests.crash.campaign import Result, run
from tests.crash.nats import nats_server
from tests.crash.plan import Fate
from tests.crash.report import table
from tests.crash.scenario import Scenario

SHORT = Scenario(messages=150, kills=0, lease=2.0, mix={})

DEATHS = ["fetched, not started", "before an ack", "before a retry"]
LETTER = "a letter on the wire"

CONTROLS = {
    "GoneAtFetch": ("lost", replace(SHORT, pause=0.05, points=["fetched, not started"])),
    "LetterThenAck": ("duplicates", replace(SHORT, points=[bugs.BETWEEN], mix={Fate.PERMANENT: 0.1})),
    "SuspectsInTheCrowd": ("innocents", replace(SHORT, messages=60, processes=1, pause=0.05, mix={Fate.KILLER: 0.01})),
    "count_deliveries_as_attempts": ("innocents", replace(SHORT, points=DEATHS, mix={Fate.FLAKY: 0.9})),
    "letters_without_an_id": ("duplicates", replace(SHORT, points=[LETTER], mix={Fate.PERMANENT: 0.3})),
    "terminate_what_failed": ("lost", replace(SHORT, mix={Fate.FLAKY: 0.2})),
}

BESIDE = {"count_deliveries_as_attempts": {"early"}}
"""What may turn red too: a retry is found early by the number of its attempt, which is what this bug gets wrong."""


def test_every_bug_planted_in_the_adapter_has_a_control() -> None:
    assert CONTROLS.keys() >= nats_bugs.BUGS.keys()


@pytest.mark.parametrize("bug", CONTROLS)
async def test_a_planted_bug_turns_its_own_count_red(bug: str, tmp_path: Path) -> None:
    expected, scenario = CONTROLS[bug]

    result = await _run(replace(scenario, bug=bug), tmp_path)

    red = {*result.verdict.red} - BESIDE.get(bug, set())
    assert red == {expected}, f"{table([result])}\n{result.stderr}"


async def test_the_same_run_without_a_bug_is_all_zero(tmp_path: Path) -> None:
    mix = {Fate.FLAKY: 0.3, Fate.PERMANENT: 0.3}
    scenario = replace(SHORT, points=[*DEATHS, LETTER], stops=["before a give-up"], mix=mix)

    result = await _run(scenario, tmp_path)

    assert result.verdict.red == [], f"{table([result])}\n{result.stderr}"


async def _run(scenario: Scenario, folder: Path) -> Result:
    with nats_server(folder / "nats", cut=0.0) as adapter:
        return await run(scenario, adapter=adapter, folder=folder, redrive=False)
