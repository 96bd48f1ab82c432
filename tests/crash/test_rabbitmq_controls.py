"""Negative controls on RabbitMQ: a harness that does not see a planted bug proves nothing about code without one.

Letters that are written twice are no bug here, since they have one key: see what `docs/guarantees.md` says.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash import rabbitmq_bugs
from tests.crash.adapter import Adapter
from tests.crash.campaign import Result, run
from tests.crash.plan import Fate
from tests.crash.rabbitmq import UNWRITTEN, WRITTEN, rabbitmq, wipe
from tests.crash.report import table
from tests.crash.scenario import Scenario

pytestmark = pytest.mark.skipif("REDRIVE_CRASH_RABBITMQ" not in os.environ, reason="make crash-rabbitmq runs it")

SHORT = Scenario(messages=120, kills=0, lease=2.0, mix={})

DEATHS = ["fetched, not started", "before an ack", "before a retry"]

CONTROLS = {
    "GoneAtFetch": ("lost", replace(SHORT, pause=0.05, points=["fetched, not started"])),
    "RetryInMemory": ("lost", replace(SHORT, points=["after a retry, before its answer"], mix={Fate.FLAKY: 0.3})),
    "DeliveriesAsAttempts": ("innocents", replace(SHORT, points=DEATHS, mix={Fate.FLAKY: 0.6})),
    "SuspectsInTheCrowd": ("innocents", replace(SHORT, messages=60, processes=1, pause=0.05, mix={Fate.KILLER: 0.01})),
    "ack_before_writing": ("lost", replace(SHORT, points=[UNWRITTEN], mix={Fate.FLAKY: 0.3})),
    # Half of them are still at work when those behind them are acked.
    "ack_all_up_to_the_last": (
        "lost",
        replace(SHORT, messages=60, points=["after an ack, before its answer"], mix={Fate.SLOW: 0.5}),
    ),
}


@pytest.fixture(scope="module")
def one_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adapter]:
    with rabbitmq(tmp_path_factory.mktemp("rabbitmq") / "server", cut=0.0) as adapter:
        yield adapter


@pytest.fixture
def adapter(one_for_all: Adapter) -> Adapter:
    wipe(one_for_all.look_url)
    return replace(one_for_all, quiet=SHORT.lease * 1.5)  # several of its heartbeats


def test_every_bug_planted_in_the_adapter_has_a_control() -> None:
    assert CONTROLS.keys() >= rabbitmq_bugs.BUGS.keys()


@pytest.mark.parametrize("bug", CONTROLS)
async def test_a_planted_bug_turns_its_own_count_red(bug: str, adapter: Adapter, tmp_path: Path) -> None:
    expected, scenario = CONTROLS[bug]

    result = await _run(replace(scenario, bug=bug), adapter, tmp_path)

    assert result.verdict.red == [expected], f"{table([result])}\n{result.stderr}"


async def test_the_same_run_without_a_bug_is_all_zero(adapter: Adapter, tmp_path: Path) -> None:
    mix = {Fate.FLAKY: 0.3, Fate.PERMANENT: 0.3}
    scenario = replace(SHORT, points=[*DEATHS, UNWRITTEN, WRITTEN], mix=mix)

    result = await _run(scenario, adapter, tmp_path)

    assert result.verdict.red == [], f"{table([result])}\n{result.stderr}"


async def _run(scenario: Scenario, adapter: Adapter, folder: Path) -> Result:
    return await run(scenario, adapter=adapter, folder=folder, redrive=False)
