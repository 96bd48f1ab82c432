"""A pause, and its end: whoever looks at it changes nothing."""

import asyncio
from datetime import timedelta

import pytest

from redrive.brokers.rabbitmq import RabbitBroker
from redrive.brokers.rabbitmq.link import Link
from redrive.core.duration import NOW
from tests.rabbitmq.conftest import PATIENCE, Scene


async def test_a_pause_that_has_ended_is_not_brought_back_by_somebody_who_looked_at_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await scene.worker()
    looker = RabbitBroker(scene.url, clock=scene.clock)
    await scene.broker.pause(scene.queue, group="shop", why="the bank is down")
    looking, ended, get = asyncio.Event(), asyncio.Event(), Link.get

    async def slow(self: Link, channel: object, queue: str) -> object:
        found = await get(self, channel, queue)  # type: ignore[arg-type]
        if queue.endswith(".paused"):
            looking.set()
            await ended.wait()
        return found

    monkeypatch.setattr(Link, "get", slow)
    depth = asyncio.ensure_future(looker.depth(scene.queue, group="shop"))
    taken = asyncio.ensure_future(looking.wait())
    await asyncio.wait([taken, depth], return_when=asyncio.FIRST_COMPLETED)
    taken.cancel()
    await scene.broker.pause(scene.queue, group="shop", why=None)
    ended.set()
    assert (await depth).paused == "the bank is down"
    await looker.aclose()
    await scene.publish(b"1")

    assert (await scene.broker.depth(scene.queue, group="shop")).paused is None
    assert len(await worker.fetch(1, wait=NOW)) == 1


async def test_the_reason_of_the_last_pause_is_what_every_process_is_told(scene: Scene) -> None:
    worker = await scene.worker()
    looker = RabbitBroker(scene.url, clock=scene.clock)
    for why in ("the bank is down", "the bank is closed"):
        await scene.broker.pause(scene.queue, group="shop", why=why)
        async with asyncio.timeout(PATIENCE.total_seconds()):
            while (await looker.depth(scene.queue, group="shop")).paused != why:  # noqa: ASYNC110 - as it comes
                await asyncio.sleep(0.01)
        assert (await scene.broker.depth(scene.queue, group="shop")).paused == why
    await looker.aclose()

    assert not await worker.fetch(1, wait=timedelta(milliseconds=1))
