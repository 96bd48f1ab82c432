"""Negative controls on Redis: a harness that does not see a planted bug proves nothing about code without one."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash import bugs, redis_bugs
from tests.crash.campaign import Result, run
from tests.crash.plan import Fate
from tests.crash.redis import redis
from tests.crash.report import return_table, table
from tests.crash.scenario import Scenario
from tests.crash.way_back import run as run_way_back
from tests.crash.way_back_redriver import FORGETFUL, SENT

SHORT = Scenario(messages=200, kills=0, lease=1.0, mix={})

DEATHS = ["fetched, not started", "before an ack", "before a retry"]

CONTROLS = {
    "GoneAtFetch": ("lost", replace(SHORT, pause=0.05, points=["fetched, not started"])),
    "LetterThenAck": ("duplicates", replace(SHORT, points=[bugs.BETWEEN], mix={Fate.PERMANENT: 0.1})),
    "SuspectsInTheCrowd": ("innocents", replace(SHORT, messages=60, processes=1, pause=0.05, mix={Fate.KILLER: 0.01})),
    "count_deliveries_as_attempts": ("innocents", replace(SHORT, points=DEATHS, mix={Fate.FLAKY: 0.6})),
    "settle_without_owner_check": (
        "duplicates",
        replace(SHORT, stops=["before a give-up"], mix={Fate.PERMANENT: 0.3}),
    ),
    # A lease long enough that the death is known before it ends: what a lease ends is not the dead's any more.
    "delete_the_consumers_of_the_dead": ("lost", replace(SHORT, lease=5.0, points=["fetched, not started"])),
    "send_again_blindly": ("copies", SHORT),
}

# Hundreds wait for a retry that is not due before the run is over; this seed kills when they are many.
BEHIND_RETRIES = replace(
    SHORT, messages=900, seed=20, retry_delay=600.0, points=["fetched, not started"], mix={Fate.FLAKY: 0.95}
)


def test_every_bug_planted_in_the_adapter_has_a_control() -> None:
    assert CONTROLS.keys() | {"reap_all_consumers_at_once"} >= redis_bugs.BUGS.keys()


@pytest.mark.parametrize("bug", CONTROLS)
async def test_a_planted_bug_turns_its_own_count_red(bug: str, tmp_path: Path) -> None:
    expected, scenario = CONTROLS[bug]

    result = await _run(replace(scenario, bug=bug), tmp_path)

    assert result.verdict.red == [expected], f"{table([result])}\n{result.stderr}"


async def test_the_same_run_without_a_bug_is_all_zero(tmp_path: Path) -> None:
    scenario = replace(SHORT, points=DEATHS, stops=["before a give-up"], mix={Fate.FLAKY: 0.3, Fate.PERMANENT: 0.3})

    result = await _run(scenario, tmp_path)

    assert result.verdict.red == [], f"{table([result])}\n{result.stderr}"


@pytest.mark.parametrize(("bug", "expected"), [("reap_all_consumers_at_once", ["stuck", "abandoned"]), ("", ["stuck"])])
async def test_what_a_dead_worker_held_is_found_behind_any_number_of_retries(
    bug: str, expected: list[str], tmp_path: Path
) -> None:
    result = await _run(replace(BEHIND_RETRIES, bug=bug), tmp_path)

    assert result.verdict.red == expected, f"{table([result])}\n{result.stderr}"


async def test_a_broker_that_forgets_what_it_sent_back_turns_the_count_red(tmp_path: Path) -> None:
    scenario = Scenario(messages=60, kills=0, bug=FORGETFUL)

    with redis(tmp_path / "redis", cut=0.0) as adapter:
        result = await run_way_back(scenario, adapter=adapter, folder=tmp_path, points=[SENT])

    assert "published twice" in result.verdict.red, return_table([result])


async def _run(scenario: Scenario, folder: Path) -> Result:
    with redis(folder / "redis", cut=0.05 if scenario.bug == "send_again_blindly" else 0.0) as adapter:
        return await run(scenario, adapter=adapter, folder=folder, redrive=False)
