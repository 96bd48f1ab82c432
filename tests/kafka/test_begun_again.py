"""A queue that is not the one that was read: deleted and begun again, or cut off."""

from collections.abc import AsyncIterator

import pytest

from redrive.brokers.kafka import KafkaBroker
from redrive.brokers.kafka.names import group_id
from redrive.clock import SystemClock
from redrive.core.duration import NOW
from redrive.core.event import BrokerFaulted, Event
from redrive.core.message import Message
from redrive.core.outcome import Settlement
from tests.kafka.scenes import begin_again, begin_topic, join, produce, take


class Sink:
    """Everything that was told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
async def broker(kafka_url: str, sink: Sink) -> AsyncIterator[KafkaBroker]:
    broker = KafkaBroker(kafka_url, clock=SystemClock(), sink=sink)
    yield broker
    await broker.aclose()


def faults(sink: Sink) -> str:
    return "\n".join(event.why for event in sink.events if isinstance(event, BrokerFaulted))


async def test_a_queue_that_is_begun_again_under_a_worker_is_read_from_its_start(
    broker: KafkaBroker, kafka_url: str, queue: str, sink: Sink
) -> None:
    begin_topic(kafka_url, queue)
    worker = await join(broker, queue)
    await broker.publish(queue, [Message("", queue, b"old") for _ in range(5)])
    await worker.settle([Settlement(each) for each in await take(worker, 5)])
    begin_again(kafka_url, queue)
    produce(kafka_url, queue, *[{"value": b"%d" % number} for number in range(3)])
    taken = await take(worker, 3)
    answers = await worker.settle([Settlement(each) for each in taken])

    assert [each.message.body for each in taken] == [b"0", b"1", b"2"]
    assert {answer.status.name for answer in answers} == {"DONE"}
    assert "the topic was begun again" in faults(sink)


async def test_a_queue_that_is_begun_again_and_grows_past_its_worker_is_read_from_its_start(
    broker: KafkaBroker, kafka_url: str, queue: str, sink: Sink
) -> None:
    begin_topic(kafka_url, queue)
    worker = await join(broker, queue)
    await broker.publish(queue, [Message("", queue, b"old")])
    await worker.settle([Settlement(each) for each in await take(worker, 1)])
    begin_again(kafka_url, queue)
    produce(kafka_url, queue, *[{"value": b"%d" % number} for number in range(30)])
    bodies: set[bytes] = set()
    while len(bodies) < 30:  # those behind the old place may come twice: before it is seen, and after
        taken = await take(worker, 1)
        bodies |= {each.message.body for each in taken}
        await worker.settle([Settlement(each) for each in taken])

    assert bodies == {b"%d" % number for number in range(30)}
    assert f"{queue} [0] is not as it was when it was read" in faults(sink)


async def test_a_group_that_stands_beyond_the_end_of_its_queue_begins_at_the_start(
    broker: KafkaBroker, kafka_url: str, queue: str, sink: Sink
) -> None:
    begin_topic(kafka_url, queue)
    produce(kafka_url, queue, {"value": b"0"}, {"value": b"1"})
    worker = await join(broker, queue)
    office = broker._office  # noqa: SLF001
    office.positions.commit(group_id(queue, "shop"), {(queue, 0): 100})
    taken = await take(worker, 2)

    assert [each.message.body for each in taken] == [b"0", b"1"]
    assert f"{queue} [0] is not as it was when it was read" in faults(sink)


async def test_a_group_that_stands_at_the_end_of_its_queue_stays_there(
    broker: KafkaBroker, kafka_url: str, queue: str, sink: Sink
) -> None:
    begin_topic(kafka_url, queue)
    produce(kafka_url, queue, {"value": b"0"}, {"value": b"1"})
    worker = await join(broker, queue)
    broker._office.positions.commit(group_id(queue, "shop"), {(queue, 0): 2})  # noqa: SLF001

    assert not await worker.fetch(10, wait=NOW)
    assert faults(sink) == ""
