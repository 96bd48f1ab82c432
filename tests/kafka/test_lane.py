"""Where retries wait."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from redrive.brokers.kafka import KafkaBroker
from redrive.brokers.kafka.lane import COUNT, partition_in
from redrive.brokers.kafka.record import to_micros
from redrive.core.message import Message
from redrive.core.outcome import Settlement
from tests.kafka.scenes import begin_topic, bench_on, produce, server_of, take

NEVER = datetime(1970, 1, 1, tzinfo=UTC)
MESSAGE = Message("orders-0-1", "orders", b"")


@pytest.mark.parametrize(
    ("delay", "tier"), [("0s", 0), ("10s", 0), ("11s", 1), ("60s", 1), ("10m", 2), ("2h", 3), ("1d", 4), ("8d", 5)]
)
def test_long_delays_do_not_stand_before_short_ones(delay: str, tier: int) -> None:
    units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
    long = timedelta(**{units[delay[-1]]: int(delay[:-1])})

    assert partition_in(COUNT, MESSAGE, long) == tier
    assert partition_in(3 * COUNT, MESSAGE, long) // 3 == tier


def test_retries_of_one_key_wait_in_one_place() -> None:
    keyed = [Message(f"orders-0-{number}", "orders", b"", key=b"k") for number in range(50)]

    assert len({partition_in(8 * COUNT, message, timedelta()) for message in keyed}) == 1


async def test_a_retry_says_in_its_headers_where_it_comes_from(broker: KafkaBroker, kafka_url: str, queue: str) -> None:
    begin_topic(kafka_url, queue)
    produce(kafka_url, queue, {"value": b"1", "key": b"k", "headers": [("tenant", b"\xff")]})
    bench = bench_on(broker, queue)
    worker = await bench.worker()
    (delivery,) = await take(worker, 1)
    await worker.settle([bench.retry(delivery)])
    record = _first_in(kafka_url, f"{queue}..shop.lane")
    headers = dict(record.headers())
    said = json.loads(headers["rd-state"])

    assert (record.value(), record.key(), headers["tenant"]) == (b"1", b"k", b"\xff")
    assert (said["id"], said["queue"], said["group"]) == (f"{queue}-0-0", queue, "shop")
    assert said["published"] == to_micros(delivery.message.published_at or NEVER)
    assert said["failures"] == 1


def _first_in(url: str, topic: str) -> Any:
    """What a plain client reads there."""
    consumer = Consumer(
        {
            "bootstrap.servers": server_of(url),
            "group.id": "looks",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(topic, number) for number in range(COUNT)])
    record = consumer.poll(30)
    consumer.close()
    assert record is not None
    assert record.error() is None
    return record


async def test_what_is_done_is_trimmed_from_the_lane(broker: KafkaBroker, queue: str) -> None:
    bench = bench_on(broker, queue)
    worker, delivery = await bench.one_delivery()
    await worker.settle([bench.retry(delivery)])
    (again,) = await take(worker, 1)
    await worker.settle([Settlement(again)])
    membership = broker._members[queue, "shop"]  # noqa: SLF001 - it is done by itself every ten minutes
    membership.calls.submit(membership.trim).result(60)
    place = (f"{queue}..shop.lane", 0)
    positions = broker._office.positions  # noqa: SLF001

    assert positions.starts([place])[place] > 0
