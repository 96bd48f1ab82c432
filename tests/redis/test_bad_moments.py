"""Fetches cancelled and answers cut at any moment, clocks that are wrong: nothing is lost or waits a lease."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from redrive.brokers.redis import RedisBroker
from redrive.clock import SystemClock
from redrive.core.delivery import Delivery
from redrive.core.errors import BrokerUnavailable
from redrive.core.event import BrokerFaulted, Event
from redrive.core.message import Message
from redrive.core.outcome import GiveUp, RetryLater, Settlement
from redrive.core.ports import Options, Subscription
from tests.redis.letters import letter
from tests.servers.proxy import FaultProxy
from tests.servers.redis import RedisServer

Connect = Callable[[str], RedisBroker]

WAIT = timedelta(seconds=1)


class WrongClock(SystemClock):
    """A clock that is an hour off."""

    def __init__(self, hours: int) -> None:
        self._off = timedelta(hours=hours)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._off


class Sink:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)


async def settle(worker: Subscription, items: Sequence[Settlement]) -> None:
    """Settle until an answer comes."""
    while True:
        with contextlib.suppress(BrokerUnavailable):
            await worker.settle(items)
            return


async def test_fetches_cancelled_at_any_moment_lose_nothing(broker: RedisBroker, queue: str) -> None:
    chance = random.Random(1)
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    done: list[Delivery] = []
    for number in range(200):
        await broker.publish(queue, [Message("", queue, b"%d" % number)])
        fetching = asyncio.create_task(worker.fetch(chance.choice([1, 50]), wait=WAIT))
        await asyncio.sleep(chance.random() * 0.004)
        fetching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            done += await fetching
    while len(done) < 200:
        done += await worker.fetch(50, wait=WAIT)
    await worker.settle([Settlement(delivery) for delivery in done])

    assert sorted(int(delivery.message.body) for delivery in done) == [*range(200)]
    assert {(delivery.attempt, delivery.alone) for delivery in done} == {(1, False)}
    assert (await broker.depth(queue, group="shop")).in_flight == 0


async def test_answers_cut_at_any_step_lose_nothing_and_count_nothing_twice(
    redis_server: RedisServer, connect: Connect, queue: str
) -> None:
    """Every message fails once; every tenth dies at its second attempt."""
    with FaultProxy(redis_server.port, seed=7) as proxy:
        broker = connect(f"redis://127.0.0.1:{proxy.port}")
        worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
        await broker.publish(queue, [Message("", queue, b"%d" % number) for number in range(300)])
        proxy.cut_share = 0.1
        ended: dict[str, int] = {}
        while len(ended) < 300:
            found: list[Delivery] = []
            with contextlib.suppress(BrokerUnavailable):
                found += await worker.fetch(20, wait=timedelta(milliseconds=50))
            await settle(worker, [_outcome(queue, delivery) for delivery in found])
            ended |= {one.message.id: one.failures for one in found if one.failures}
        proxy.cut_share = 0.0
        depth = await broker.depth(queue, group="shop")
        letters = await broker.dead_letters(queue).length()

    assert set(ended.values()) == {1}
    assert proxy.answers_cut > 10
    assert (depth.waiting, depth.in_flight, depth.scheduled, letters) == (0, 0, 0, 30)


def _outcome(queue: str, delivery: Delivery) -> Settlement:
    if not delivery.failures:
        return Settlement(delivery, RetryLater(timedelta()))
    if int(delivery.message.body) % 10:
        return Settlement(delivery)
    own = replace(letter(queue), letter_id=f"letter-{delivery.message.id}")
    return Settlement(delivery, GiveUp("no"), letter=own)


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_worker_whose_clock_is_wrong_meets_the_servers_times(hours: int, redis_url: str, queue: str) -> None:
    broker = RedisBroker(redis_url, clock=WrongClock(hours))
    worker: Subscription = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    await broker.publish(queue, [Message("", queue, b"1")])
    (first,) = await worker.fetch(1, wait=WAIT)
    await worker.settle([Settlement(first, RetryLater(timedelta(milliseconds=20)))])
    at_once = await worker.fetch(1, wait=timedelta())
    (second,) = await worker.fetch(1, wait=WAIT)
    suspects = await worker.heartbeat()
    await broker.aclose()

    assert (list(at_once), second.failures, suspects) == ([], 1, 0)


async def test_a_group_that_was_lost_is_an_event(fresh_redis: RedisServer, queue: str) -> None:
    sink = Sink()
    broker = RedisBroker(fresh_redis.url, clock=SystemClock(), sink=sink)
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    await broker.publish(queue, [Message("", queue, b"1")])
    fresh_redis.ask("XGROUP", "DESTROY", queue, "shop")
    with pytest.raises(BrokerUnavailable, match="group is gone"):
        await worker.fetch(1, wait=timedelta())
    found = await worker.fetch(1, wait=WAIT)
    await broker.aclose()

    assert len(found) == 1
    assert [event.why.split(",")[0] for event in sink.events if isinstance(event, BrokerFaulted)] == [
        "the consumer group was gone"
    ]


@pytest.mark.parametrize("trouble", ["replica", "scripts"])
async def test_a_worker_outlasts_a_server_in_trouble(
    trouble: str, fresh_redis: RedisServer, connect: Connect, queue: str
) -> None:
    broker = connect(fresh_redis.url)
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    await broker.publish(queue, [Message("", queue, b"1")])
    (first,) = await worker.fetch(1, wait=WAIT)
    retry = Settlement(first, RetryLater(timedelta()))
    if trouble == "replica":
        fresh_redis.ask("REPLICAOF", "127.0.0.1", "1")
        for call in (worker.settle([retry]), worker.fetch(1, wait=timedelta()), worker.heartbeat()):
            with pytest.raises(BrokerUnavailable):
                await call
        fresh_redis.ask("REPLICAOF", "NO", "ONE")
    else:
        fresh_redis.ask("SCRIPT", "FLUSH")
    await worker.settle([retry])
    fresh_redis.ask("SCRIPT", "FLUSH")
    (again,) = await worker.fetch(1, wait=WAIT)

    assert again.failures == 1
