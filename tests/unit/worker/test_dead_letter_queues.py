import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from redrive.brokers.memory import MemoryBroker
from redrive.core.errors import BrokerUnavailable, DeadLetterError, DeadLetterQueueClosed
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.ports import DeadLetterQueue, Options
from redrive.core.reason import Reason
from redrive.core.redrive import RedriveOutcome
from redrive.core.wire import load_outcome
from redrive.testing.clock import ManualClock
from redrive.testing.queues import RecordingDeadLetterQueue
from redrive.worker.dead_letter_queues import AnyLoopDeadLetterQueue, BrokerDeadLetterQueue

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LETTER = DeadLetter(
    letter_id="letter-1",
    queue="orders",
    payload=b"\xff",
    payload_sha256="",
    reason=Reason.REJECTED,
    failed_at=NOW,
)
OUTCOME = RedriveOutcome("letter-1", 1, succeeded=True, reported_at=NOW, queue="orders", group="", message_id="m1")


async def bodies(broker: MemoryBroker, queue: str) -> list[bytes]:
    subscription = await broker.subscribe(queue, group="reader", options=Options(owner="reader"))
    return [delivery.message.body for delivery in await subscription.fetch(10, wait=timedelta(0))]


async def test_a_letter_goes_once_to_the_dlq_of_its_queue() -> None:
    broker = MemoryBroker(clock=ManualClock())
    queue = BrokerDeadLetterQueue(broker)

    await queue.send(LETTER)
    await queue.send(LETTER)

    (entry,) = await broker.dead_letters("orders").peek()
    assert (entry.letter.letter_id, entry.letter.queue, entry.letter.payload) == ("letter-1", "orders", b"\xff")


async def test_an_outcome_goes_to_the_outcomes_of_its_queue() -> None:
    broker = MemoryBroker(clock=ManualClock())

    await BrokerDeadLetterQueue(broker).report(OUTCOME)

    assert [load_outcome(body) for body in await bodies(broker, "orders.outcomes")] == [OUTCOME]


async def test_a_letter_of_the_wrapper_is_redriven_to_the_queue_it_came_from() -> None:
    broker = MemoryBroker(clock=ManualClock())
    await broker.publish("orders", [Message("", "orders", b"first")])
    await BrokerDeadLetterQueue(broker).send(LETTER)
    (entry,) = await broker.dead_letters("orders").peek()

    await broker.dead_letters("orders").redrive(entry.entry_id)

    assert await bodies(broker, "orders") == [b"first", b"\xff"]


async def test_a_broker_that_does_not_answer_is_a_letter_that_was_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = MemoryBroker(clock=ManualClock())

    def no_answer(_: str) -> None:
        raise BrokerUnavailable("the disk is full")

    monkeypatch.setattr(broker, "dead_letters", no_answer)

    with pytest.raises(DeadLetterError, match="the disk is full") as raised:
        await BrokerDeadLetterQueue(broker).send(LETTER)
    assert isinstance(raised.value.__cause__, BrokerUnavailable)


def on_a_broker() -> DeadLetterQueue:
    return BrokerDeadLetterQueue(MemoryBroker(clock=ManualClock()))


def on_any_loop() -> DeadLetterQueue:
    return AnyLoopDeadLetterQueue(on_a_broker)


@pytest.mark.parametrize("make", [on_a_broker, on_any_loop])
@pytest.mark.parametrize("used", [True, False], ids=["used", "unused"])
async def test_a_closed_queue_refuses_everything_and_may_be_closed_again(
    make: Callable[[], DeadLetterQueue],
    used: bool,  # noqa: FBT001 - a parameter of pytest
) -> None:
    queue = make()
    if used:
        await queue.send(LETTER)
    await queue.aclose()
    await queue.aclose()

    with pytest.raises(DeadLetterQueueClosed):
        await queue.send(LETTER)
    with pytest.raises(DeadLetterQueueClosed):
        await queue.report(OUTCOME)


class LoopBound(RecordingDeadLetterQueue):
    """A queue that, like most clients, works only on the event loop where it was opened."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()

    async def send(self, letter: DeadLetter) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("attached to a different loop")
        await super().send(letter)


def test_a_queue_that_is_bound_to_a_loop_can_be_used_from_many() -> None:
    opened: list[LoopBound] = []

    def open_queue() -> LoopBound:
        opened.append(LoopBound())
        return opened[-1]

    queue = AnyLoopDeadLetterQueue(open_queue)
    for _ in range(3):
        asyncio.run(queue.send(LETTER))
    asyncio.run(queue.report(OUTCOME))

    (only,) = opened
    assert only.events == (LETTER,) * 3
    assert only.reports == (OUTCOME,)


def test_a_queue_that_cannot_be_opened_is_tried_again_at_the_next_letter() -> None:
    ready: list[RecordingDeadLetterQueue] = []

    def open_queue() -> RecordingDeadLetterQueue:
        if not ready:
            raise BrokerUnavailable("no such directory")
        return ready[0]

    queue = AnyLoopDeadLetterQueue(open_queue)
    with pytest.raises(BrokerUnavailable):
        asyncio.run(queue.send(LETTER))

    ready.append(RecordingDeadLetterQueue())
    asyncio.run(queue.send(LETTER))
    assert ready[0].events == (LETTER,)
