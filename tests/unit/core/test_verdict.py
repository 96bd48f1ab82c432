import pytest

from redrive.core.redrive import ItemStatus, Progress, RedriveState
from redrive.core.verdict import verdict
from tests.unit.core.test_redrive import FAILED, OTHERWISE, PLANNED, SENT, SUCCEEDED, UNCONFIRMED, a_redrive

UNTOUCHED = ItemStatus.UNTOUCHED


def said(state: RedriveState, *steps: dict[ItemStatus, int], versions: tuple[str, ...] = (), why: str = "") -> str:
    return verdict(a_redrive(state=state, why=why), Progress(steps, versions))


def test_a_redrive_that_worked_tells_its_steps_and_the_version() -> None:
    steps = ({SUCCEEDED: 1}, {SUCCEEDED: 5}, {SUCCEEDED: 25}, {SUCCEEDED: 969})

    assert said(RedriveState.DONE, *steps, versions=("4f2c",)) == (
        "Sent 1, it succeeded on version 4f2c; sent 5, then 25, then 969: 1,000 resolved, 0 unconfirmed"
    )


def test_a_redrive_that_stopped_tells_what_was_spared() -> None:
    steps = ({FAILED: 1}, {UNTOUCHED: 5}, {UNTOUCHED: 25}, {UNTOUCHED: 969})

    assert said(RedriveState.STOPPED, *steps) == "stopped after 1: same failure, 999 untouched"


def test_a_redrive_without_canaries_tells_one_number() -> None:
    assert said(RedriveState.DONE, {SUCCEEDED: 7, FAILED: 2}) == (
        "Sent 9: 7 resolved, 0 unconfirmed, 2 failed the same way"
    )


@pytest.mark.parametrize(
    ("state", "steps", "words"),
    [
        (
            RedriveState.PAUSED,
            ({SUCCEEDED: 1}, {SUCCEEDED: 4, OTHERWISE: 1}, {PLANNED: 994}),
            "Sent 1, it succeeded; sent 5; paused: 1 failed in another way; 994 untouched",
        ),
        (
            RedriveState.CANCELLED,
            ({SUCCEEDED: 1}, {UNTOUCHED: 9}),
            "Sent 1; cancelled: 1 resolved, 0 unconfirmed, 9 untouched",
        ),
        (
            RedriveState.RUNNING,
            ({SUCCEEDED: 1}, {SENT: 2, PLANNED: 7}),
            "Sent 1, it succeeded; sent 2; running: 1 resolved, 0 unconfirmed, 2 still out, 7 to go",
        ),
        (RedriveState.DONE, ({UNCONFIRMED: 3},), "Sent 3: 0 resolved, 3 unconfirmed"),
        (RedriveState.CANCELLED, ({UNTOUCHED: 3},), "Sent nothing; cancelled: 0 resolved, 0 unconfirmed, 3 untouched"),
    ],
)
def test_every_end_has_its_sentence(state: RedriveState, steps: tuple[dict[ItemStatus, int], ...], words: str) -> None:
    assert said(state, *steps, why="1 failed in another way" if state is RedriveState.PAUSED else "") == words
