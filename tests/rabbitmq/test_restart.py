"""A server that is killed and comes back: its queues have no leader for a moment, and nothing is taken for gone."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

import pytest

from redrive.brokers.rabbitmq import RabbitBroker
from redrive.clock import SystemClock
from redrive.core.delivery import Delivery
from redrive.core.duration import NOW
from redrive.core.errors import BrokerUnavailable
from redrive.core.message import Message
from redrive.core.outcome import RetryLater, Settlement, SettleStatus
from redrive.core.ports import Options, Subscription
from tests.rabbitmq.conftest import PATIENCE
from tests.servers.rabbitmq import RabbitServer

T = TypeVar("T")

QUEUE = "orders"


@pytest.fixture
async def broker(fresh_rabbitmq: RabbitServer) -> AsyncIterator[RabbitBroker]:
    broker = RabbitBroker(fresh_rabbitmq.url, clock=SystemClock())
    yield broker
    await broker.aclose()


async def insist(call: Callable[[], Awaitable[T]]) -> T:
    """What a call answers, once there is a server: until then it may say nothing but that there is none."""
    async with asyncio.timeout(PATIENCE.total_seconds()):
        while True:
            try:
                return await call()
            except BrokerUnavailable:
                await asyncio.sleep(0.01)


async def strike(server: RabbitServer) -> None:
    """Kill a server, and start it again."""
    await asyncio.to_thread(server.keeps_its_queues)
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)


async def all_of(worker: Subscription, number: int) -> list[Delivery]:
    """So many deliveries, of those that come and of the suspects."""
    found: list[Delivery] = []
    while len(found) < number:
        found += await insist(lambda: worker.fetch(number, wait=timedelta(milliseconds=100)))
        suspect = await insist(worker.fetch_suspect)
        found += [suspect] if suspect is not None else []
    return found


async def test_a_killed_server_that_comes_back_is_away_for_a_moment_and_has_everything(
    fresh_rabbitmq: RabbitServer, broker: RabbitBroker
) -> None:
    bodies = [b"%d" % number for number in range(20)]
    worker = await broker.subscribe(QUEUE, group="shop", options=Options(owner="a"))
    await broker.publish(QUEUE, [Message("", QUEUE, body) for body in bodies])
    before = await all_of(worker, 5)
    await worker.settle([Settlement(each, RetryLater(NOW)) for each in before])
    await strike(fresh_rabbitmq)
    async with asyncio.timeout(PATIENCE.total_seconds()):  # it may say for a moment that nothing waits
        while (await insist(lambda: broker.depth(QUEUE, group="shop"))).waiting != len(bodies):
            pass
    after = await all_of(worker, len(bodies))
    answers = await insist(lambda: worker.settle([Settlement(each) for each in after]))

    assert sorted(each.message.body for each in after) == sorted(bodies)
    assert {answer.status for answer in answers} == {SettleStatus.DONE}
    assert sum(each.failures for each in after) == len(before)


async def test_whoever_publishes_to_a_server_that_has_just_come_back_loses_nothing(
    fresh_rabbitmq: RabbitServer, broker: RabbitBroker
) -> None:
    for number in range(3):
        await insist(lambda number=number: broker.publish(QUEUE, [Message("", QUEUE, b"%d" % number)]))  # type: ignore[misc]
        await strike(fresh_rabbitmq)
    worker = await insist(lambda: broker.subscribe(QUEUE, group="shop", options=Options(owner="a")))

    assert {each.message.body for each in await all_of(worker, 3)} == {b"0", b"1", b"2"}
