"""Connections that break, consumers that are cancelled, channels that the server closes: noticed, and begun again."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from redrive.brokers.rabbitmq import RabbitBroker
from redrive.brokers.rabbitmq.hands import Hold
from redrive.core.delivery import Delivery
from redrive.core.duration import NOW
from redrive.core.errors import BrokerError, BrokerUnavailable
from redrive.core.event import BrokerFaulted
from redrive.core.message import Message
from redrive.core.outcome import RetryLater, Settlement
from redrive.core.ports import Options, Subscription
from tests.rabbitmq.conftest import PATIENCE, Scene
from tests.servers.proxy import FaultProxy


@pytest.fixture
def proxy(scene: Scene) -> Iterator[FaultProxy]:
    with FaultProxy(urlsplit(scene.url).port or 0) as proxy:
        yield proxy


def far(scene: Scene, proxy: FaultProxy) -> RabbitBroker:
    """A broker behind a bad network."""
    return RabbitBroker(f"amqp://guest:guest@127.0.0.1:{proxy.port}", clock=scene.clock)


async def persevere(worker: Subscription) -> Delivery:
    """One delivery, from a worker that goes on whatever breaks."""
    async with asyncio.timeout(PATIENCE.total_seconds()):
        while True:
            try:
                if found := await worker.fetch(1, wait=timedelta(seconds=1)):
                    return found[0]
            except BrokerError:
                await asyncio.sleep(0.05)


async def a_suspect(worker: Subscription) -> Delivery:
    """A suspect, once it has come to light: what comes again is looked at on the way."""
    async with asyncio.timeout(PATIENCE.total_seconds()):
        while True:
            try:
                assert not await worker.fetch(1, wait=NOW)
                if found := await worker.fetch_suspect():
                    return found
            except BrokerUnavailable:
                await asyncio.sleep(0.05)


def is_in_hand(delivery: Delivery) -> bool:
    """Whether it could be settled now. To ask the worker would end its handler."""
    return isinstance(delivery.token, Hold) and delivery.token.is_ours


async def lose(worker: Subscription, held: Delivery) -> None:
    """Wait until the worker knows that a delivery has been taken from it."""
    async with asyncio.timeout(PATIENCE.total_seconds()):
        while not await worker.extend([held]):  # noqa: ASYNC110 - the client hears of it when it does
            await asyncio.sleep(0.01)


async def test_after_a_cut_what_was_in_hand_is_lost_and_the_worker_goes_on(scene: Scene, proxy: FaultProxy) -> None:
    broker = far(scene, proxy)
    worker = await broker.subscribe(scene.queue, group="shop", options=Options(owner="a"))
    await scene.publish(b"1")
    held = await persevere(worker)
    proxy.cut()
    await lose(worker, held)

    assert [answer.status for answer in await worker.settle([Settlement(held)])] == ["lost"]
    await scene.publish(b"2")
    assert (await persevere(worker)).message.body == b"2"
    await broker.aclose()


async def test_a_message_whose_handler_still_runs_comes_back_into_the_same_hands(
    scene: Scene, proxy: FaultProxy
) -> None:
    broker = far(scene, proxy)
    worker = await broker.subscribe(scene.queue, group="shop", options=Options(owner="a"))
    await scene.publish(b"1")
    held = await persevere(worker)
    proxy.cut()
    async with asyncio.timeout(PATIENCE.total_seconds()):
        while is_in_hand(held):  # noqa: ASYNC110 - as in `lose`
            await asyncio.sleep(0.01)
        while not is_in_hand(held):
            try:
                assert not await worker.fetch(1, wait=timedelta(seconds=1))
            except BrokerUnavailable:
                await asyncio.sleep(0.05)

    assert [answer.status for answer in await worker.settle([Settlement(held)])] == ["done"]
    assert await worker.heartbeat() == 0
    await broker.aclose()


async def test_a_message_whose_handler_was_ended_does_not_come_back_into_its_hands(
    scene: Scene, proxy: FaultProxy
) -> None:
    broker = far(scene, proxy)
    worker = await broker.subscribe(scene.queue, group="shop", options=Options(owner="a"))
    await scene.publish(b"1")
    held = await persevere(worker)
    proxy.cut()
    await lose(worker, held)
    suspect = await a_suspect(worker)

    assert suspect.message.body == b"1"
    assert [answer.status for answer in await worker.settle([Settlement(held)])] == ["lost"]
    assert [answer.status for answer in await worker.settle([Settlement(suspect)])] == ["done"]
    await broker.aclose()


async def test_settling_comes_to_an_end_on_a_connection_that_has_just_ended(scene: Scene) -> None:
    worker = await scene.worker()
    await scene.publish(b"1")
    held = await scene.take(worker)
    connection: Any = await scene.broker._office.link.connection()  # noqa: SLF001
    connection._writer_task.cancel()  # noqa: SLF001 - it takes nothing more, and nobody has noticed yet
    await asyncio.wait([connection._writer_task])  # noqa: SLF001

    async with asyncio.timeout(PATIENCE.total_seconds()):
        await worker.settle([Settlement(held)])
    assert (await a_suspect(worker)).message.body == b"1"


async def test_a_connection_that_ends_cancels_nobody_who_waits_for_a_confirmation(
    scene: Scene, proxy: FaultProxy
) -> None:
    broker = far(scene, proxy)
    worker = await broker.subscribe(scene.queue, group="shop", options=Options(owner="a"))
    await scene.publish(b"1", b"2")
    held = [await persevere(worker) for _ in range(2)]
    await worker.settle([Settlement(held[0], RetryLater(NOW))])  # so that everything is begun
    proxy.delay = PATIENCE.total_seconds()
    settling = asyncio.ensure_future(worker.settle([Settlement(held[1], RetryLater(NOW))]))
    while not settling.done() and not await is_on_its_way(broker):  # noqa: ASYNC110 - as in `lose`
        await asyncio.sleep(0.01)
    connection = await broker._office.link.connection()  # noqa: SLF001
    closing = asyncio.ensure_future(connection.close())

    with pytest.raises(BrokerUnavailable):
        await settling
    proxy.cut()
    await asyncio.wait([closing])
    await broker.aclose()


async def is_on_its_way(broker: RabbitBroker) -> bool:
    """Whether something waits for its confirmation."""
    publisher: Any = broker._office.link._publisher  # noqa: SLF001
    return any(not each.done() for each in publisher.confirmations.values())


async def test_without_a_server_a_call_says_so(scene: Scene) -> None:
    nobody = RabbitBroker("amqp://guest:guest@127.0.0.1:1", clock=scene.clock)
    with pytest.raises(BrokerUnavailable):
        await nobody.queues()
    await nobody.aclose()


async def test_a_wrong_password_is_no_reason_to_try_again(scene: Scene) -> None:
    stranger = RabbitBroker(scene.url.replace("guest:guest", "guest:wrong"), clock=scene.clock)
    with pytest.raises(BrokerError, match="does not accept this user") as caught:
        await stranger.queues()
    assert not isinstance(caught.value, BrokerUnavailable)
    await stranger.aclose()


async def test_a_consumer_that_the_server_cancels_is_noticed_and_begun_again(scene: Scene) -> None:
    worker = await scene.worker()
    waiting = asyncio.ensure_future(worker.fetch(1, wait=PATIENCE))
    while not await scene.broker._office.link.count(scene.queue, consumers=True):  # noqa: ASYNC110, SLF001
        await asyncio.sleep(0.01)
    await scene.channel.queue_delete(scene.queue)
    with pytest.raises(BrokerError):
        await waiting
    await scene.broker.publish(scene.queue, [Message("", scene.queue, b"after")])

    assert (await persevere(worker)).message.body == b"after"
    assert any("cancelled the consumer" in event.why for event in scene.events if isinstance(event, BrokerFaulted))


async def test_a_channel_closed_by_the_consumer_timeout_is_noticed_and_opened_again(scene: Scene) -> None:
    worker = await scene.worker()
    await scene.publish(b"slow")
    held = await scene.take(worker)
    async with asyncio.timeout(PATIENCE.total_seconds()):
        while not await worker.extend([held]):
            scene.clock.advance(timedelta(minutes=20))
            await scene.broker.queues()
            await asyncio.sleep(0.05)

    assert any("timed out" in event.why for event in scene.events if isinstance(event, BrokerFaulted))
    await scene.publish(b"next")
    assert (await persevere(worker)).message.body in (b"next", b"slow")
