"""Negative controls on RabbitMQ: a harness that does not see a planted bug proves nothing about code without one."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash import rabbitmq_bugs
from tests.crash.campaign import run
from tests.crash.plan import Fate
from tests.crash.rabbitmq import UNWRITTEN, rabbitmq
from tests.crash.report import table
from tests.crash.scenario import Scenario

pytestmark = pytest.mark.skipif("REDRIVE_CRASH_RABBITMQ" not in os.environ, reason="make crash-rabbitmq runs it")

SHORT = Scenario(messages=120, kills=0, lease=2.0, mix={})

CONTROLS = {
    "GoneAtFetch": ("lost", replace(SHORT, pause=0.05, points=["fetched, not started"])),
    "ack_before_writing": ("lost", replace(SHORT, points=[UNWRITTEN], mix={Fate.FLAKY: 0.3})),
}


def test_every_bug_planted_in_the_adapter_has_a_control() -> None:
    assert CONTROLS.keys() >= rabbitmq_bugs.BUGS.keys()


@pytest.mark.parametrize("bug", CONTROLS)
async def test_a_planted_bug_turns_its_own_count_red(bug: str, tmp_path: Path) -> None:
    expected, scenario = CONTROLS[bug]
    with rabbitmq(tmp_path / "rabbitmq", cut=0.0) as adapter:
        result = await run(replace(scenario, bug=bug), adapter=adapter, folder=tmp_path, redrive=False)

    assert result.verdict.red == [expected], f"{table([result])}\n{result.stderr}"
