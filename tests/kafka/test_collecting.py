"""The collector on Kafka: it commits when the store has, and reads what others have written."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from redrive.brokers.kafka import DlqTopic, KafkaBroker
from redrive.clock import SystemClock
from redrive.core.audit import Act
from redrive.core.errors import StoreUnavailable
from redrive.core.event import ConsumerPaused, Event
from redrive.core.letter import DeadLetter
from redrive.core.query import Query
from redrive.core.redrive import RedriveOutcome
from redrive.core.stored import Collected
from redrive.observe.bus import Bus
from redrive.stores.memory import MemoryStore
from redrive.worker.collector import Collector
from redrive.worker.outcomes import Surroundings
from tests.kafka.scenes import begin_topic, produce, server_of
from tests.unit.core.test_kafka_headers import CONNECT, SPRING


class Shut(MemoryStore):
    """A store that is away until it is opened."""

    is_open = False

    async def collect(
        self, letters: Sequence[DeadLetter], outcomes: Sequence[RedriveOutcome] = (), *, act: Act | None = None
    ) -> Collected:
        if not self.is_open:
            raise StoreUnavailable("away")
        return await super().collect(letters, outcomes, act=act)


def collecting(broker: KafkaBroker, store: MemoryStore, *queues: str, bus: Bus | None = None) -> Collector:
    around = Surroundings(SystemClock(), bus or Bus(), Random(1))
    return Collector(broker, store, around=around, queues=queues)


def committed(url: str, topic: str, group: str = "") -> int:
    """How far the collectors' group has committed, as anybody can see it."""
    consumer = Consumer({"bootstrap.servers": server_of(url), "group.id": group or f"{topic}..redrive"})
    (place,) = consumer.committed([TopicPartition(topic, 0)], timeout=30)
    consumer.close()
    return max(place.offset, 0)


async def test_nothing_is_committed_before_the_store_has_it(broker: KafkaBroker, kafka_url: str, queue: str) -> None:
    dlq = f"{queue}.dlq"
    begin_topic(kafka_url, dlq)
    produce(kafka_url, dlq, {"value": b"1"}, {"value": b"2"})
    store, paused = Shut(clock=SystemClock()), asyncio.Event()

    def hear(event: Event) -> None:
        if isinstance(event, ConsumerPaused):
            paused.set()

    async with asyncio.timeout(120), collecting(broker, store, queue, bus=Bus(hear)) as collector:
        await paused.wait()
        before = await asyncio.to_thread(committed, kafka_url, dlq)
        store.is_open = True
        await collector.drained()
    after = await asyncio.to_thread(committed, kafka_url, dlq)

    assert (before, after) == (0, 2)
    assert {letter.payload for letter in await letters(store)} == {b"1", b"2"}


async def test_a_collector_reads_in_the_consumer_group_that_the_settings_name(kafka_url: str, queue: str) -> None:
    name = f"{queue}-dlq"
    broker = KafkaBroker(kafka_url, clock=SystemClock(), dlq=DlqTopic(group=name))
    dlq = f"{queue}.dlq"
    begin_topic(kafka_url, dlq)
    produce(kafka_url, dlq, {"value": b"1"}, {"value": b"2"})
    store = MemoryStore(clock=SystemClock())

    async with asyncio.timeout(120), collecting(broker, store, queue) as collector:
        await collector.drained()
    depth = await broker.depth(dlq, group="redrive")
    await broker.aclose()

    assert len(await letters(store)) == 2
    assert (depth.waiting, depth.in_flight) == (0, 0)
    assert await asyncio.to_thread(committed, kafka_url, dlq, name) == 2
    assert await asyncio.to_thread(committed, kafka_url, dlq) == 0


async def test_letters_of_spring_and_of_kafka_connect_are_read_with_what_they_carry(
    broker: KafkaBroker, kafka_url: str, queue: str
) -> None:
    dlq = f"{queue}.dlq"
    begin_topic(kafka_url, dlq)
    records: list[dict[str, Any]] = [
        {"value": b"\xff1", "key": b"k", "headers": list(headers)} for headers in (SPRING, CONNECT)
    ]
    produce(kafka_url, dlq, *records)
    store = MemoryStore(clock=SystemClock())

    async with asyncio.timeout(120), collecting(broker, store, queue) as collector:
        await collector.drained()

    found = {letter.error_message: letter for letter in await letters(store)}
    assert found.keys() == {"no customer", "not JSON"}
    for letter in found.values():
        assert (letter.queue, letter.original_message_id, letter.group) == ("orders", "orders-2-4711", "")
        assert (letter.payload, letter.key) == (b"\xff1", b"k")
    assert found["no customer"].headers == (("content-type", b"application/json"),)
    assert found["not JSON"].context["connector"] == "warehouse"


async def letters(store: MemoryStore) -> list[DeadLetter]:
    rows = await store.select(Query(), limit=10)
    return [stored.letter for stored in await store.get_many([row.letter_id for row in rows])]
