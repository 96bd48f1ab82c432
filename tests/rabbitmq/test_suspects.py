"""What comes again: with which of it had anybody begun?"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest
from aiormq.abc import DeliveredMessage

from redrive.brokers.rabbitmq import RabbitBroker
from redrive.brokers.rabbitmq.judging import Judge
from redrive.brokers.rabbitmq.names import Place
from redrive.core.duration import NOW
from redrive.core.outcome import Settlement
from redrive.core.ports import Options
from tests.rabbitmq.conftest import PATIENCE, Scene


async def gone_with_a_message(scene: Scene, *, given_back: DeliveredMessage | None = None) -> None:
    """A process takes a message and its connection ends with it; just before, somebody gives another one back."""
    process = RabbitBroker(scene.url, clock=scene.clock)
    worker = await process.subscribe(scene.queue, group="shop", options=Options(owner="dead"))
    await scene.publish(b"begun")
    assert await worker.fetch(1, wait=PATIENCE)
    if given_back is not None:
        await scene.channel.basic_nack(given_back.delivery_tag or 0)
        await scene.channel.flow(active=True)
    await process.aclose()
    await scene.broker._office.link.back_in(scene.queue, 1 if given_back is None else 2)  # noqa: SLF001


async def test_what_was_handed_out_comes_by_no_fetch_that_does_not_wait(scene: Scene) -> None:
    worker = await scene.worker()
    await gone_with_a_message(scene)

    assert not await worker.fetch(10, wait=NOW)
    suspect = await worker.fetch_suspect()
    assert suspect is not None
    assert (suspect.message.body, suspect.crashes) == (b"begun", 0)


async def test_what_was_handed_out_comes_by_no_fetch_that_waits(scene: Scene) -> None:
    worker = await scene.worker()
    await gone_with_a_message(scene)
    waiting = asyncio.ensure_future(worker.fetch(10, wait=timedelta(minutes=1)))
    async with asyncio.timeout(PATIENCE.total_seconds()):
        while not await worker.heartbeat():  # noqa: ASYNC110 - as workers do
            await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.wait([waiting])

    suspect = await worker.fetch_suspect()
    assert suspect is not None


async def test_what_waited_long_for_a_worker_with_a_free_lane_is_still_a_suspect(scene: Scene) -> None:
    worker = await scene.worker()
    assert not await worker.fetch(1, wait=NOW)
    await gone_with_a_message(scene)
    scene.clock.advance(timedelta(minutes=20))  # it was paused, or all its lanes were busy

    assert not await worker.fetch(10, wait=NOW)
    assert await worker.fetch_suspect()


async def test_what_waited_long_behind_another_that_came_again_is_still_a_suspect(scene: Scene) -> None:
    worker = await scene.worker()
    assert not await worker.fetch(1, wait=NOW)
    await scene.publish(b"looked at")
    looked_at = await scene.channel.basic_get(scene.queue)
    await gone_with_a_message(scene, given_back=looked_at)
    for _ in range(2):
        scene.clock.advance(timedelta(minutes=8))
        taken = await worker.fetch(1, wait=NOW)
        assert b"begun" not in [each.message.body for each in taken]
        await worker.settle([Settlement(each) for each in taken])

    assert await worker.fetch_suspect()


async def test_a_suspect_that_waited_long_has_still_crashed_its_worker(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await scene.worker()
    assert await worker.fetch_suspect() is None
    await gone_with_a_message(scene)
    assert not await worker.fetch(1, wait=NOW)
    process = RabbitBroker(scene.url, clock=scene.clock)
    alone = await process.subscribe(scene.queue, group="shop", options=Options(owner="dead"))
    assert await alone.fetch_suspect()
    await process.aclose()
    monkeypatch.setattr("redrive.brokers.rabbitmq.suspects.is_dead", lambda _: True)
    await scene.broker._office.link.back_in(Place(scene.queue, "shop").suspects, 1)  # noqa: SLF001
    scene.clock.advance(timedelta(minutes=20))
    suspect = await worker.fetch_suspect()

    assert suspect is not None
    assert suspect.crashes == 1


async def test_what_somebody_only_looked_at_is_no_suspect(scene: Scene) -> None:
    worker = await scene.worker()
    await scene.publish(b"looked at")
    await scene.broker.depth(scene.queue, group="shop")

    assert [found.message.body for found in await worker.fetch(10, wait=NOW)] == [b"looked at"]


async def test_a_fetch_that_is_cancelled_while_it_hands_out_takes_nothing(scene: Scene) -> None:
    worker = await scene.worker()
    await scene.publish(b"1", b"2", b"3")
    for number in range(20):
        waiting = asyncio.ensure_future(worker.fetch(3, wait=timedelta(minutes=1)))
        await asyncio.sleep(0.002 * number)
        waiting.cancel()
        await asyncio.wait([waiting])
        if not waiting.cancelled():
            await worker.release(waiting.result())
    depth = await scene.broker.depth(scene.queue, group="shop")

    assert (depth.waiting, depth.in_flight) == (3, 0)


async def test_while_it_is_decided_about_what_came_again_no_more_is_taken(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.worker()
    process = RabbitBroker(scene.url, clock=scene.clock)
    dead = await process.subscribe(scene.queue, group="shop", options=Options(owner="dead"))
    await scene.publish(*(b"%d" % number for number in range(10)))
    begun = await dead.fetch(3, wait=PATIENCE)
    await process.aclose()
    await scene.broker._office.link.back_in(scene.queue, 10)  # noqa: SLF001
    decided, judge = asyncio.Event(), Judge.judge

    async def thoughtful(self: Judge, batch: Sequence[DeliveredMessage]) -> tuple[list[DeliveredMessage], int]:
        await decided.wait()
        return await judge(self, batch)

    monkeypatch.setattr(Judge, "judge", thoughtful)
    worker = await scene.worker()
    for _ in range(3):
        assert not await worker.fetch(len(begun), wait=timedelta(milliseconds=50))

    assert await scene.broker._office.link.count(scene.queue) == 10 - len(begun)  # noqa: SLF001
    decided.set()
