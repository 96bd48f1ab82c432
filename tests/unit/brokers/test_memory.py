"""What the memory broker has beyond the port: it tells a test when there is nothing left to do."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from redrive.brokers.memory import MemoryBroker
from redrive.brokers.memory.group import REMEMBERED
from redrive.core.duration import NOW
from redrive.core.message import Message
from redrive.core.outcome import RetryLater, Settlement, SettleStatus
from redrive.core.ports import Options, Subscription
from redrive.testing.clock import ManualClock

HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def broker(clock: ManualClock) -> MemoryBroker:
    return MemoryBroker(clock=clock)


async def subscribe(broker: MemoryBroker) -> Subscription:
    return await broker.subscribe("orders", group="shop", options=Options(owner="worker-1"))


async def publish(broker: MemoryBroker, *bodies: bytes, delay: timedelta = NOW) -> Sequence[str]:
    return await broker.publish("orders", [Message("", "orders", body) for body in bodies], delay=delay)


async def is_idle(broker: MemoryBroker) -> bool:
    try:
        async with asyncio.timeout(0):
            await broker.idle()
    except TimeoutError:
        return False
    return True


async def test_it_is_idle_when_what_somebody_listens_to_is_done(broker: MemoryBroker) -> None:
    worker = await subscribe(broker)
    await publish(broker, b"1")
    waiting = await is_idle(broker)
    (delivery,) = await worker.fetch(1, wait=NOW)
    in_flight = await is_idle(broker)
    idle = asyncio.ensure_future(broker.idle())
    await asyncio.sleep(0)
    await worker.settle([Settlement(delivery)])
    await idle

    assert (waiting, in_flight) == (False, False)


async def test_what_nobody_listens_to_does_not_keep_it_busy(broker: MemoryBroker) -> None:
    await publish(broker, b"1")
    unheard = await is_idle(broker)
    worker = await subscribe(broker)
    heard = await is_idle(broker)
    await worker.aclose()

    assert (unheard, heard, await is_idle(broker)) == (True, False, True)


async def test_what_waits_for_the_clock_or_for_a_person_does_not_keep_it_busy(broker: MemoryBroker) -> None:
    worker = await subscribe(broker)
    await publish(broker, b"1", delay=HOUR)
    scheduled = await is_idle(broker)
    await publish(broker, b"2")
    await broker.pause("orders", group="shop", why="the bank is down")

    assert (scheduled, await is_idle(broker)) == (True, True)
    assert not await worker.fetch(1, wait=NOW)


async def test_it_knows_when_the_next_message_falls_due(broker: MemoryBroker, clock: ManualClock) -> None:
    worker = await subscribe(broker)
    nothing = broker.next_due_at()
    await publish(broker, b"1", delay=HOUR)
    await publish(broker, b"2")
    (delivery,) = await worker.fetch(1, wait=NOW)
    await worker.settle([Settlement(delivery, RetryLater("5m"))])
    soonest = broker.next_due_at()
    clock.advance("5m")

    assert nothing is None
    assert soonest == clock.now()
    assert broker.next_due_at() == clock.now() + HOUR - timedelta(minutes=5)


async def test_a_fetch_that_waits_sleeps_on_the_clock_alone(broker: MemoryBroker, clock: ManualClock) -> None:
    worker = await subscribe(broker)
    await publish(broker, b"1", delay=HOUR)
    waiting = asyncio.ensure_future(worker.fetch(1, wait=2 * HOUR))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    wakes_at = clock.next_wake_at()
    clock.advance(HOUR)

    assert wakes_at == clock.now()
    assert [delivery.message.body for delivery in await waiting] == [b"1"]


async def test_it_remembers_the_latest_settlements_only(broker: MemoryBroker) -> None:
    worker = await subscribe(broker)
    await publish(broker, *(b"%d" % number for number in range(REMEMBERED + 1)))
    items = [Settlement(delivery) for delivery in await worker.fetch(REMEMBERED + 1, wait=NOW)]
    await worker.settle(items)
    answers = await worker.settle([items[0], items[-1]])

    assert [answer.status for answer in answers] == [SettleStatus.LOST, SettleStatus.REPEATED]


async def test_its_doctor_says_that_nothing_survives_this_process(broker: MemoryBroker) -> None:
    (finding,) = await broker.diagnose()

    assert "nothing survives" in finding.found
