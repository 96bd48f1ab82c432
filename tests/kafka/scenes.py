"""Workers on a topic, and what somebody else writes to it."""

from collections.abc import Sequence
from datetime import timedelta
from threading import Event, Thread
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from redrive.brokers.kafka import KafkaBroker
from redrive.brokers.kafka.names import group_id
from redrive.clock import SystemClock
from redrive.core.delivery import Delivery
from redrive.core.ports import Options, Subscription
from redrive.testing.conformance.bench import Bench, BrokerUnderTest

WAIT = timedelta(seconds=30)
MUCH = 10_000_000


def server_of(url: str) -> str:
    return url.partition("://")[2].partition("?")[0]


def begin_topic(url: str, name: str, partitions: int = 1, copies: int = 1, /, **settings: str) -> None:
    """What an administrator does."""
    admin = AdminClient({"bootstrap.servers": server_of(url)})
    admin.create_topics([NewTopic(name, partitions, copies, config=settings)])[name].result(30)


def begin_again(url: str, name: str) -> None:
    """What an administrator does who is in a hurry."""
    admin = AdminClient({"bootstrap.servers": server_of(url)})
    admin.delete_topics([name])[name].result(30)
    begin_topic(url, name)


def produce(url: str, topic: str, *records: dict[str, Any]) -> None:
    """What another producer does."""
    producer = Producer({"bootstrap.servers": server_of(url), "message.max.bytes": MUCH})
    for record in records:
        producer.produce(topic, **record)
    assert producer.flush(30) == 0


def values_in(url: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values that another reader finds in a topic of three partitions: what was committed."""
    consumer = Consumer({"bootstrap.servers": server_of(url), "group.id": "looks", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(3)])
    found, ends = [], 0
    while ends < 3:
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            ends += 1
        else:
            found.append((message.key(), message.value()))
    consumer.close()
    return found


class Guest:
    """A member of the group that reads a queue who comes for a while, and does nothing with what it gets."""

    def __init__(self, url: str, queue: str) -> None:
        self.is_in = Event()
        self.has_some = Event()
        self._leaving = Event()
        self._thread = Thread(target=self._stay, args=(url, queue))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        self._thread.join()

    def _stay(self, url: str, queue: str) -> None:
        settings = {
            "bootstrap.servers": server_of(url),
            "group.id": group_id(queue, "shop"),
            "partition.assignment.strategy": "cooperative-sticky",
            "enable.auto.commit": False,
        }
        consumer = Consumer(settings)
        consumer.subscribe([queue], on_assign=self._assigned)
        while not self._leaving.is_set():
            consumer.poll(0.05)
        consumer.close()

    def _assigned(self, _: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self.is_in.set()
        if partitions:
            self.has_some.set()


async def join(broker: KafkaBroker, queue: str, owner: str = "one", **options: Any) -> Subscription:
    return await broker.subscribe(queue, group="shop", options=Options(owner=owner, **options))


async def take(worker: Subscription, count: int) -> Sequence[Delivery]:
    taken: list[Delivery] = []
    while len(taken) < count:
        more = await worker.fetch(count - len(taken), wait=WAIT)
        assert more
        taken.extend(more)
    return taken


def bench_on(broker: KafkaBroker, queue: str) -> Bench:
    """The verbs of the conformance suite, on a broker whose time runs."""

    async def no(*_: object) -> Any:
        raise NotImplementedError

    return Bench(BrokerUnderTest(broker=broker, clock=SystemClock(), elapse=no, reopen=no, patience=WAIT), queue=queue)
