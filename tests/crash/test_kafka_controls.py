"""Negative controls on Kafka: a harness that does not see a planted bug proves nothing about code without one."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash import bugs, kafka_bugs
from tests.crash.campaign import run
from tests.crash.kafka import kafka
from tests.crash.plan import Fate
from tests.crash.report import table
from tests.crash.scenario import Scenario

SHORT = Scenario(messages=200, kills=0, lease=2.0, mix={})

CONTROLS = {
    "GoneAtFetch": ("lost", replace(SHORT, pause=0.05, points=["fetched, not started"])),
    "LetterThenAck": ("duplicates", replace(SHORT, points=[bugs.BETWEEN], mix={Fate.PERMANENT: 0.1})),
    "commit_beside_the_transaction": (
        "duplicates",
        replace(SHORT, points=["committed, before the answer"], mix={Fate.PERMANENT: 0.3}),
    ),
    "commit_the_highest": ("lost", replace(SHORT, points=[kafka_bugs.BEYOND], mix={Fate.SLOW: 0.2})),
}


def test_every_bug_planted_in_the_adapter_has_a_control() -> None:
    assert CONTROLS.keys() >= kafka_bugs.BUGS.keys()


@pytest.mark.parametrize("bug", CONTROLS)
async def test_a_planted_bug_turns_its_own_count_red(bug: str, tmp_path: Path) -> None:
    expected, scenario = CONTROLS[bug]
    with kafka(tmp_path / "kafka") as adapter:
        result = await run(replace(scenario, bug=bug), adapter=adapter, folder=tmp_path, redrive=False)

    assert result.verdict.red == [expected], f"{table([result])}\n{result.stderr}"
