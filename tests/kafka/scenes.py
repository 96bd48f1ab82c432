"""Workers on a topic, and what somebody else writes to it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from redrive.brokers.kafka import KafkaBroker
from redrive.clock import SystemClock
from redrive.core.delivery import Delivery
from redrive.core.ports import Options, Subscription
from redrive.testing.conformance.bench import Bench, BrokerUnderTest

WAIT = timedelta(seconds=30)
MUCH = 10_000_000


def server_of(url: str) -> str:
    return url.partition("://")[2].partition("?")[0]


def begin_topic(url: str, name: str, **settings: str) -> None:
    """What an administrator does."""
    admin = AdminClient({"bootstrap.servers": server_of(url)})
    admin.create_topics([NewTopic(name, 1, 1, config=settings)])[name].result(30)


def produce(url: str, topic: str, *records: dict[str, Any]) -> None:
    """What another producer does."""
    producer = Producer({"bootstrap.servers": server_of(url), "message.max.bytes": MUCH})
    for record in records:
        producer.produce(topic, **record)
    assert producer.flush(30) == 0


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
