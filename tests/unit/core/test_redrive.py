from datetime import UTC, datetime
from typing import Any

import pytest

from redrive.core.redrive import (
    Gate,
    ItemStatus,
    Move,
    Progress,
    Redrive,
    Target,
    Waiting,
    answered,
    edited_origin,
    gate,
    left,
    next_move,
    sent,
    target_of,
    why_waiting,
)

PLANNED, CLAIMED, SENT = ItemStatus.PLANNED, ItemStatus.CLAIMED, ItemStatus.SENT
SUCCEEDED, FAILED, OTHERWISE = ItemStatus.SUCCEEDED, ItemStatus.FAILED, ItemStatus.FAILED_OTHERWISE
UNCONFIRMED = ItemStatus.UNCONFIRMED


def a_redrive(**changes: Any) -> Redrive:
    values: dict[str, Any] = {
        "redrive_id": "r1",
        "created_at": datetime(2030, 1, 1, tzinfo=UTC),
        "by": "sam",
        "selection": "all",
        "total": 10,
        "steps": (1, 4),
    }
    return Redrive(**{**values, **changes})


def progress(*steps: dict[ItemStatus, int]) -> Progress:
    return Progress(steps)


# ------------------------------------------------------------------------------------------------------- the gate


def test_a_step_opens_when_all_of_it_has_succeeded() -> None:
    assert gate(progress({SUCCEEDED: 5}), 0, last=False) is Gate.OPEN


@pytest.mark.parametrize("status", [PLANNED, CLAIMED, SENT])
def test_a_step_waits_while_anything_of_it_is_out(status: ItemStatus) -> None:
    assert gate(progress({SUCCEEDED: 4, status: 1}), 0, last=False) is Gate.WAIT


def test_the_same_failure_stops_at_once_whatever_is_still_out() -> None:
    assert gate(progress({FAILED: 1, SENT: 4, OTHERWISE: 1}), 0, last=False) is Gate.STOP


def test_another_failure_pauses_at_once() -> None:
    assert gate(progress({OTHERWISE: 1, SENT: 4}), 0, last=False) is Gate.PAUSE


def test_a_canary_that_is_not_heard_of_pauses_when_nothing_else_is_out() -> None:
    assert gate(progress({UNCONFIRMED: 1, SENT: 1}), 0, last=False) is Gate.WAIT
    assert gate(progress({UNCONFIRMED: 1, SUCCEEDED: 1}), 0, last=False) is Gate.PAUSE


def test_the_last_step_only_waits_or_ends() -> None:
    assert gate(progress({FAILED: 3, OTHERWISE: 3, UNCONFIRMED: 3}), 0, last=True) is Gate.OPEN
    assert gate(progress({FAILED: 3, SENT: 1}), 0, last=True) is Gate.WAIT


def test_what_a_person_has_accepted_does_not_pause_again_but_one_more_does() -> None:
    seen = progress({OTHERWISE: 1, UNCONFIRMED: 1}, {OTHERWISE: 1, SUCCEEDED: 3})

    assert gate(seen, 0, last=False, accepted=2) is Gate.OPEN
    assert gate(seen, 1, last=False, accepted=2) is Gate.PAUSE
    assert gate(seen, 1, last=False, accepted=3) is Gate.OPEN


def test_what_was_accepted_does_not_cover_the_same_failure() -> None:
    assert gate(progress({FAILED: 1}), 0, last=False, accepted=9) is Gate.STOP


# ---------------------------------------------------------------------------------------------------- the next move


@pytest.mark.parametrize(
    ("steps", "move"),
    [
        (({PLANNED: 1}, {PLANNED: 4}, {PLANNED: 5}), Move(Gate.OPEN, 0)),
        (({CLAIMED: 1}, {PLANNED: 4}, {PLANNED: 5}), Move(Gate.OPEN, 0)),
        (({SENT: 1}, {PLANNED: 4}, {PLANNED: 5}), Move(Gate.WAIT, 0)),
        (({SUCCEEDED: 1}, {PLANNED: 4}, {PLANNED: 5}), Move(Gate.OPEN, 1)),
        (({SUCCEEDED: 1}, {SENT: 3, FAILED: 1}, {PLANNED: 5}), Move(Gate.STOP, 1)),
        (({SUCCEEDED: 1}, {SENT: 3, OTHERWISE: 1}, {PLANNED: 5}), Move(Gate.PAUSE, 1)),
        (({SUCCEEDED: 1}, {SUCCEEDED: 4}, {SENT: 4, FAILED: 1}), Move(Gate.WAIT, 2)),
        (({SUCCEEDED: 1}, {SUCCEEDED: 4}, {SUCCEEDED: 4, FAILED: 1}), Move(Gate.OPEN, 2, done=True)),
        (({ItemStatus.SKIPPED: 1}, {ItemStatus.SKIPPED: 4}, {PLANNED: 5}), Move(Gate.OPEN, 2)),
        (({FAILED: 1}, {SUCCEEDED: 4}, {PLANNED: 5}), Move(Gate.STOP, 0)),
    ],
)
def test_the_next_move_is_that_of_the_first_step_which_is_not_behind_us(
    steps: tuple[dict[ItemStatus, int], ...], move: Move
) -> None:
    assert next_move(a_redrive(), progress(*steps)) == move


# --------------------------------------------------------------------------------------------------- the other rules


@pytest.mark.parametrize("status", [SUCCEEDED, FAILED, OTHERWISE, UNCONFIRMED, SENT])
def test_recording_a_message_does_not_undo_what_was_heard_of_it(status: ItemStatus) -> None:
    assert sent(CLAIMED) is SENT
    assert sent(status) is status


def test_when_a_redrive_ends_what_is_out_is_unconfirmed_and_the_rest_is_untouched() -> None:
    assert left(PLANNED) is ItemStatus.UNTOUCHED
    assert left(CLAIMED) is left(SENT) is UNCONFIRMED
    assert left(SUCCEEDED) is SUCCEEDED


def test_success_is_final_and_a_late_report_moves_the_unconfirmed() -> None:
    assert answered(SUCCEEDED, succeeded=False, same=True) is SUCCEEDED
    assert answered(UNCONFIRMED, succeeded=True, same=False) is SUCCEEDED
    assert answered(FAILED, succeeded=True, same=False) is SUCCEEDED
    assert answered(UNCONFIRMED, succeeded=False, same=False) is OTHERWISE


@pytest.mark.parametrize(
    ("group", "to", "queue", "target"),
    [
        ("shop", "lane", None, Target("b", "orders", "shop")),
        ("shop", "queue", None, Target("b", "orders")),
        ("", "lane", None, Target("b", "orders")),
        ("shop", "queue", "repairs", Target("b", "repairs")),
        ("shop", "lane", "repairs", Target("b", "repairs", "shop")),
    ],
)
def test_a_letter_goes_to_the_lane_of_its_group_or_to_the_queue(
    group: str, to: str, queue: str | None, target: Target
) -> None:
    assert target_of(Target("b", "orders", group), to=to, target_queue=queue) == target


def test_only_an_edit_gives_a_message_another_origin() -> None:
    once = edited_origin("m-1", 1)

    assert edited_origin("m-1", 0) == "m-1"
    assert once != "m-1"
    assert edited_origin(once, 1) == once
    assert edited_origin(once, 2) not in (once, "m-1")


@pytest.mark.parametrize(
    ("waiting", "said"),
    [
        (Waiting(paused="rollout", alive=3), "the consumer is paused: rollout"),
        (Waiting(), "no consumer is alive on this queue"),
        (
            Waiting(alive=1, versions=("4f2c",), failed_on=("4f2c", "1a")),
            "the consumer's version is unchanged since the failure: 4f2c",
        ),
        (Waiting(alive=2, versions=("4f2c", "5e"), failed_on=("4f2c",)), "the consumer is working"),
        (Waiting(alive=1), "the consumer is working"),
    ],
)
def test_waiting_has_a_reason_in_words(waiting: Waiting, said: str) -> None:
    assert why_waiting(waiting) == said
