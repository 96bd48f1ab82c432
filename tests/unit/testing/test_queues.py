import asyncio
from datetime import UTC, datetime

import pytest

from redrive.core.errors import DeadLetterQueueClosed, DeadLetterQueueFull
from redrive.core.letter import DeadLetter
from redrive.core.ports import DeadLetterQueue
from redrive.core.reason import Reason
from redrive.core.redrive import RedriveOutcome
from redrive.testing.queues import NullDeadLetterQueue, RecordingDeadLetterQueue

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def letter(number: int = 1) -> DeadLetter:
    return DeadLetter(
        letter_id=str(number),
        queue="orders",
        payload=b"7",
        payload_sha256="",
        reason=Reason.REJECTED,
        failed_at=NOW,
    )


OUTCOME = RedriveOutcome("1", 1, succeeded=True, reported_at=NOW, queue="orders", group="", message_id="m1")


async def test_the_null_queue_takes_everything_and_keeps_nothing() -> None:
    queue: DeadLetterQueue = NullDeadLetterQueue()
    before = dict(vars(queue))

    await queue.send(letter())
    await queue.report(OUTCOME)

    assert vars(queue) == before


async def test_letters_and_reports_are_remembered_in_order() -> None:
    queue = RecordingDeadLetterQueue()

    await queue.send(letter(1))
    await queue.send(letter(2))
    await queue.report(OUTCOME)

    assert queue.events == (letter(1), letter(2))
    assert queue.count == 2
    assert queue.last == letter(2)
    assert queue.reports == (OUTCOME,)


async def test_an_empty_queue_has_no_last_letter() -> None:
    queue = RecordingDeadLetterQueue()

    assert (queue.count, queue.events) == (0, ())
    with pytest.raises(LookupError, match="no dead letter"):
        _ = queue.last


async def test_a_full_queue_refuses_letters_until_it_is_cleared() -> None:
    queue = RecordingDeadLetterQueue(capacity=1)
    await queue.send(letter(1))

    with pytest.raises(DeadLetterQueueFull):
        await queue.send(letter(2))
    assert queue.events == (letter(1),)

    queue.clear()
    await queue.send(letter(2))
    assert queue.events == (letter(2),)


@pytest.mark.parametrize("queue", [NullDeadLetterQueue(), RecordingDeadLetterQueue()], ids=["null", "recording"])
async def test_a_closed_queue_refuses_everything_and_may_be_closed_again(queue: DeadLetterQueue) -> None:
    await queue.aclose()
    await queue.aclose()

    with pytest.raises(DeadLetterQueueClosed):
        await queue.send(letter())
    with pytest.raises(DeadLetterQueueClosed):
        await queue.report(OUTCOME)


async def test_what_a_closed_queue_holds_can_still_be_looked_at() -> None:
    queue = RecordingDeadLetterQueue()
    await queue.send(letter())
    await queue.aclose()

    assert queue.last == letter()


async def test_tasks_and_threads_may_send_at_once_and_the_capacity_holds() -> None:
    queue = RecordingDeadLetterQueue(capacity=150)

    async def send_many() -> None:
        for number in range(50):
            try:
                await queue.send(letter(number))
            except DeadLetterQueueFull:
                continue

    await asyncio.gather(
        *(asyncio.to_thread(asyncio.run, send_many()) for _ in range(3)), *(send_many() for _ in range(3))
    )
    assert queue.count == 150
