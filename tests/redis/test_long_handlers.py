"""Entries that are trimmed while their handlers run for longer than the lease."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import redis

from redrive.brokers.redis import RedisBroker
from redrive.core.outcome import RetryLater, Settlement, SettleStatus
from redrive.core.ports import LEASE
from tests.redis.scenes import WAIT, begin, cut_off, join, reasons
from tests.servers.plugin import RedisInTime

Elapse = Callable[[timedelta], Awaitable[None]]


@pytest.fixture
async def broker(redis_in_time: RedisInTime) -> AsyncIterator[RedisBroker]:
    broker = RedisBroker(redis_in_time.url, clock=redis_in_time.clock)
    yield broker
    await broker.aclose()


@pytest.fixture
def client(redis_in_time: RedisInTime) -> Iterator[Any]:
    with redis.Redis.from_url(redis_in_time.url, protocol=2) as client:
        yield client


@pytest.fixture
def elapse(redis_in_time: RedisInTime) -> Elapse:
    if redis_in_time.lease != LEASE:
        pytest.skip("time cannot be hurried here")
    return redis_in_time.elapse


async def test_a_handler_longer_than_the_lease_keeps_a_message_that_was_trimmed(
    broker: RedisBroker, queue: str, client: Any, elapse: Elapse
) -> None:
    worker, delivery = await begin(broker, queue, lease=LEASE)
    cut_off(client, queue)
    other = await join(broker, queue, "two", lease=LEASE)
    for _ in range(5):
        await elapse(LEASE / 2)
        lost = await worker.extend([delivery])
        suspects = await other.heartbeat()
        assert (lost, suspects, await reasons(broker, queue)) == ([], 0, [])
    (answer,) = await worker.settle([Settlement(delivery, RetryLater(timedelta()))])
    (again,) = await worker.fetch(1, wait=WAIT)

    assert answer.status is SettleStatus.DONE
    assert (again.message, again.failures) == (delivery.message, 1)


async def test_a_trimmed_message_of_a_worker_that_died_after_all_goes_on_with_its_copy(
    broker: RedisBroker, queue: str, client: Any, elapse: Elapse
) -> None:
    worker, delivery = await begin(broker, queue, lease=LEASE)
    cut_off(client, queue)
    await worker.extend([delivery])
    other = await join(broker, queue, "two", lease=LEASE)
    await elapse(LEASE * 2)
    await other.heartbeat()
    (again,) = await other.fetch(1, wait=WAIT)

    assert (again.message, await reasons(broker, queue)) == (delivery.message, [])
