"""A reader that stumbles reads again: it neither stops for good nor passes anything over."""

import asyncio
import contextlib
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import Message as Record

from redrive.brokers.kafka import KafkaBroker, intake
from redrive.brokers.kafka.intake import Intake
from redrive.brokers.kafka.notes import put
from redrive.brokers.kafka.record import Place
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.window import Window
from redrive.core.errors import BrokerUnavailable
from redrive.core.message import Message
from redrive.core.ports import Subscription
from tests.kafka.scenes import WAIT, Guest, begin_topic, join, take

PATIENCE: Final = 30.0  # seconds


def messages(queue: str, count: int) -> list[Message]:
    return [Message("", queue, b"%d" % number) for number in range(count)]


async def bodies_of(worker: Subscription, count: int) -> set[bytes]:
    """What a worker gets that asks again after a fault. In a rebalance some may come twice."""
    found: set[bytes] = set()
    while len(found) < count:
        with contextlib.suppress(BrokerUnavailable):
            taken = await worker.fetch(count, wait=WAIT)
            assert taken
            found |= {bytes(each.message.body) for each in taken}
    return found


@pytest.mark.parametrize("name", ["_read_one", "_read_stretch"])
async def test_what_could_not_be_read_is_read_again_with_what_came_after_it(
    broker: KafkaBroker, queue: str, name: str
) -> None:
    worker: Any = await join(broker, queue)
    (reader, _) = worker._membership._intakes  # noqa: SLF001
    read, stumbled = getattr(reader, name), list[object]()

    def stumble(given: Any, *arguments: Any, **options: Any) -> Any:
        records = given if isinstance(given, list) else [given]
        if b"1" in [record.value() for record in records] and not stumbled:
            stumbled.append(given)
            raise ArithmeticError("a message that nobody has thought of")
        return read(given, *arguments, **options)

    setattr(reader, name, stumble)
    expires_at = datetime.now(UTC) + timedelta(days=1) if name == "_read_one" else None  # it has a header of ours then
    await broker.publish(queue, [message._replace(expires_at=expires_at) for message in messages(queue, 4)])
    taken = await take(worker, 4)

    assert stumbled
    assert sorted(each.message.body for each in taken) == [b"0", b"1", b"2", b"3"]


async def test_a_partition_that_could_not_be_begun_is_begun_again(
    broker: KafkaBroker, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows, stumbled = Intake._windows, list[Sequence[Place]]()  # noqa: SLF001

    def stumble(self: Intake, places: Sequence[Place]) -> dict[Place, Window]:
        if self.topic == queue and not stumbled:
            stumbled.append(places)
            raise KeyError("an answer that nobody has thought of")
        return windows(self, places)

    monkeypatch.setattr(Intake, "_windows", stumble)
    worker = await join(broker, queue)
    await broker.publish(queue, messages(queue, 2))
    taken = await take(worker, 2)

    assert stumbled
    assert len(taken) == 2


async def test_it_is_begun_again_too_if_somebody_joins_the_group_meanwhile(
    broker: KafkaBroker, kafka_url: str, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client has joined anew by then, and keeps what it was assigned without telling of it again."""
    begin_topic(kafka_url, queue, 4)
    await broker.publish(queue, messages(queue, 40))
    guest, begun, stumbled = Guest(kafka_url, queue), threading.Event(), list[Place]()

    def stumble(consumer: Consumer, windows: Mapping[Place, Window], *, owner: str) -> None:
        if {topic for topic, _ in windows} == {queue} and not stumbled:
            stumbled.extend(windows)
            begun.set()
            guest.is_in.wait(PATIENCE)
            raise BrokerUnavailable("no answer to this commit")
        put(consumer, windows, owner=owner)

    monkeypatch.setattr(intake, "put", stumble)
    worker = await join(broker, queue)
    taking = asyncio.create_task(bodies_of(worker, 40))
    await asyncio.to_thread(begun.wait, PATIENCE)
    with guest:
        await asyncio.to_thread(guest.is_in.wait, PATIENCE)
        await asyncio.to_thread(guest.has_some.wait, PATIENCE)

    assert len(stumbled) == 4
    assert await taking == {b"%d" % number for number in range(40)}


async def test_a_message_read_before_its_partition_left_and_came_back_does_not_hide_those_before_it(
    broker: KafkaBroker, queue: str
) -> None:
    worker: Any = await join(broker, queue)
    (reader, _) = worker._membership._intakes  # noqa: SLF001
    place: Place = (queue, 0)
    before, after = Share(place, Window(0)), Share(place, Window(0))
    before.position = 3  # the first three are in hand

    class Client:
        def poll(self, _: float) -> Record:
            return Record(topic=queue, partition=0, offset=3, value=b"3")

        def consume(self, *_: object) -> list[Record]:
            reader._lost(self, [TopicPartition(*place)])  # noqa: SLF001 - rebalances are heard of in every call
            reader._shares[0] = after  # noqa: SLF001
            return []

    reader._shares[0] = before  # noqa: SLF001
    reader._read_some(Client())  # noqa: SLF001

    assert after.window == Window(0)
    assert after.position == 0
