"""Attempts counted in a Redis beside Kafka, as others may do already."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import pytest

from redrive import wiring
from redrive.brokers.counted import counted, field_rule
from redrive.brokers.kafka import KafkaBroker
from redrive.core.errors import BrokerUnavailable, ConfigError
from redrive.core.message import Message
from redrive.core.outcome import DONE, RetryLater, Settlement
from redrive.core.ports import Broker, Options, Subscription
from tests.kafka.scenes import WAIT, produce, take
from tests.servers.redis import RedisServer, ask

WEEK = 7 * 24 * 3600


@pytest.fixture
async def counting(kafka_url: str, fresh_redis: RedisServer) -> AsyncIterator[Callable[..., Broker]]:
    opened: list[Broker] = []

    def broker(**options: Any) -> Broker:
        kafka = wiring.connect(kafka_url)
        opened.append(counted(kafka, wiring.attempt_counter(fresh_redis.url, prefix="ticket"), **options))
        return opened[-1]

    yield broker
    for one in opened:
        await one.aclose()


def number(answer: Any) -> int:
    return int(answer)


async def join(broker: Broker, queue: str) -> Subscription:
    return await broker.subscribe(queue, group="shop", options=Options(owner=uuid4().hex))


async def test_failures_are_counted_under_topic_partition_and_offset_for_seven_days_and_forgotten_at_the_end(
    counting: Callable[..., Broker], fresh_redis: RedisServer, queue: str
) -> None:
    broker = counting()
    (message_id,) = await broker.publish(queue, [Message("", queue, b"1")])
    worker = await join(broker, queue)
    key = f"ticket:retry_count:{message_id}"
    assert message_id == f"{queue}-0-0"

    for failures in (0, 1):
        (delivery,) = await take(worker, 1)
        assert delivery.failures == failures
        (answer,) = await worker.settle([Settlement(delivery, RetryLater(0))])
        assert answer.due_at is not None
        assert number(ask(fresh_redis.url, "GET", key)) == failures + 1
        assert 0 < number(ask(fresh_redis.url, "TTL", key)) <= WEEK
    (delivery,) = await take(worker, 1)
    assert await worker.settle([delivery]) == [DONE]

    assert number(ask(fresh_redis.url, "EXISTS", key)) == 0
    await worker.aclose()


async def test_what_others_have_counted_under_a_field_of_the_payload_is_spent(
    counting: Callable[..., Broker], fresh_redis: RedisServer, kafka_url: str, queue: str
) -> None:
    broker = counting(id_of=field_rule("ticket_id"))
    ask(fresh_redis.url, "SET", "ticket:retry_count:T-7", "2")
    worker = await join(broker, queue)
    produce(kafka_url, queue, {"value": json.dumps({"ticket_id": "T-7"}).encode()}, {"value": b"no JSON"})

    counts = {delivery.message.body: delivery.failures for delivery in await take(worker, 2)}

    assert counts == {b'{"ticket_id": "T-7"}': 2, b"no JSON": 0}
    await worker.aclose()


async def test_without_that_redis_nothing_is_settled_nothing_is_fetched_and_everyone_is_told_why(
    counting: Callable[..., Broker], fresh_redis: RedisServer, queue: str
) -> None:
    broker = counting()
    await broker.publish(queue, [Message("", queue, b"1"), Message("", queue, b"2")])
    worker = await join(broker, queue)
    good, bad = await take(worker, 2)
    fresh_redis.kill()

    with pytest.raises(BrokerUnavailable, match="attempts cannot be counted"):
        await worker.settle([good])
    with pytest.raises(BrokerUnavailable, match="attempts cannot be counted"):
        await worker.settle([Settlement(bad, RetryLater(0))])
    with pytest.raises(BrokerUnavailable, match="attempts cannot be counted"):
        await worker.fetch(1, wait=WAIT)
    await worker.heartbeat()
    (alive,) = await broker.alive(queue, group="shop")
    depth = await broker.depth(queue, group="shop")
    assert (alive.paused or "").startswith("attempts cannot be counted: redis")
    assert (depth.waiting + depth.in_flight, depth.scheduled) == (2, 0)

    fresh_redis.start()

    assert await worker.settle([good]) == [DONE]
    await worker.settle([Settlement(bad, RetryLater(0))])
    (again,) = await take(worker, 1)
    assert (again.message.body, again.failures) == (b"2", 1)
    await worker.heartbeat()
    (alive,) = await broker.alive(queue, group="shop")
    assert alive.paused is None
    await worker.aclose()


async def test_a_failure_whose_commit_is_repeated_is_counted_once(
    counting: Callable[..., Broker], fresh_redis: RedisServer, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = counting()
    (message_id,) = await broker.publish(queue, [Message("", queue, b"1")])
    worker = await join(broker, queue)
    (delivery,) = await take(worker, 1)
    inner: Any = worker._inner  # type: ignore[attr-defined] # noqa: SLF001
    settle = inner.settle

    async def cut(_items: object) -> None:
        raise BrokerUnavailable("kafka: no answer")

    monkeypatch.setattr(inner, "settle", cut)
    with pytest.raises(BrokerUnavailable, match="no answer"):
        await worker.settle([Settlement(delivery, RetryLater(0))])
    monkeypatch.setattr(inner, "settle", settle)
    await worker.settle([Settlement(delivery, RetryLater(0))])

    assert number(ask(fresh_redis.url, "GET", f"ticket:retry_count:{message_id}")) == 1
    await worker.aclose()


@pytest.mark.parametrize(
    ("body", "counted_as"),
    [
        (b'{"id": "a"}', "a"),
        (b'{"id": 7}', "7"),
        (b'{"id": ""}', "m"),
        (b'{"id": null}', "m"),
        (b"[1]", "m"),
        (b"\xff", "m"),
        (b"[" * 100_000, "m"),
    ],
)
def test_the_id_is_what_stands_in_the_field_or_that_of_the_message(body: bytes, counted_as: str) -> None:
    assert field_rule("id")(Message("m", "orders", body)) == counted_as


async def test_settings_turn_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = wiring.connect("kafka://127.0.0.1:1")
    monkeypatch.setenv("REDRIVE_KAFKA_ATTEMPTS_REDIS", "redis://127.0.0.1:1")

    counting = wiring.connect("kafka://127.0.0.1:1")

    assert isinstance(plain, KafkaBroker)
    assert not isinstance(counting, KafkaBroker)
    assert counting.name == "kafka"
    for broker in (plain, counting):
        await broker.aclose()
    monkeypatch.setenv("REDRIVE_KAFKA_ATTEMPTS_REDIS", "sqlite:///x.db")
    with pytest.raises(ConfigError, match="attempt counter: expected a URL such as redis"):
        wiring.connect("kafka://127.0.0.1:1")
