"""What is begun on the server, how much is taken from it, and what becomes of writes that nobody takes."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from aiormq.abc import AbstractChannel

from redrive.brokers.rabbitmq.names import Place
from redrive.brokers.rabbitmq.topology import LAST_WORD, QUORUM
from redrive.core.errors import DeadLetterQueueFull
from redrive.core.event import BrokerFaulted
from redrive.core.outcome import RetryLater, Settlement, SettleStatus
from redrive.testing.conformance.bench import Bench
from tests.rabbitmq.conftest import PATIENCE, Scene


async def ready(channel: AbstractChannel, queue: str) -> int:
    """How many messages of a queue the server has given to nobody."""
    return (await channel.queue_declare(queue, passive=True)).message_count or 0


async def consumers(channel: AbstractChannel, queue: str) -> int:
    """How many consumers the server knows of."""
    return (await channel.queue_declare(queue, passive=True)).consumer_count or 0


async def test_every_queue_that_is_begun_is_a_quorum_queue(scene: Scene) -> None:
    await scene.worker()
    place = Place(scene.queue, "shop")

    for name in (scene.queue, f"{scene.queue}.dlq", place.suspects, place.held):  # another kind would be refused
        assert (await scene.channel.queue_declare(name, durable=True, arguments=dict(QUORUM))).queue == name
    assert await scene.channel.queue_declare(place.paused, durable=True, arguments=dict(LAST_WORD))


async def test_a_worker_is_sent_as_much_as_it_has_free_lanes_for(scene: Scene) -> None:
    worker = await scene.worker()
    await scene.publish(*(b"%d" % number for number in range(20)))
    taken = list(await worker.fetch(5, wait=PATIENCE))
    while len(taken) < 5:
        taken += await worker.fetch(5 - len(taken), wait=PATIENCE)

    assert await ready(scene.channel, scene.queue) == 15


async def test_a_retry_waits_in_the_hold_queue_of_the_next_longer_delay(scene: Scene) -> None:
    worker = await scene.worker()
    await scene.publish(b"1")
    held = await scene.take(worker)
    before = scene.clock.now()
    (answer,) = await worker.settle([Settlement(held, RetryLater(timedelta(seconds=7)))])

    assert answer.due_at is not None
    assert answer.due_at - before >= timedelta(seconds=8)
    assert await ready(scene.channel, Place(scene.queue, "shop").hold(8000)) == 1
    scene.clock.advance(timedelta(seconds=8))
    again = await scene.take(worker)
    assert (again.message.body, again.failures) == (b"1", 1)


async def test_a_letter_that_no_queue_takes_is_refused_and_written_when_it_is_tried_again(
    scene: Scene, bench: Bench
) -> None:
    worker = await scene.worker()
    await scene.publish(b"1")
    letter = bench.give_up(await scene.take(worker), worker)
    await scene.channel.queue_delete(f"{scene.queue}.dlq")
    (refused,) = await worker.settle([letter])
    (done,) = await worker.settle([letter])

    assert (refused.status, done.status) == (SettleStatus.REFUSED, SettleStatus.DONE)
    assert "returned" in refused.why
    assert [entry.letter.payload for entry in await bench.dlq.peek()] == [b"1"]


async def test_a_full_dlq_is_named_and_its_letters_stay_where_they_are(scene: Scene, bench: Bench) -> None:
    limits: dict[str, Any] = {**QUORUM, "x-max-length": 1, "x-overflow": "reject-publish"}
    await scene.channel.queue_declare(bench.dlq.name, durable=True, arguments=limits)
    worker = await scene.worker()
    await scene.publish(*(b"%d" % number for number in range(6)))
    held = [bench.give_up(await scene.take(worker), worker) for _ in range(6)]
    answers = [(await worker.settle([each]))[0] for each in held]
    refused = answers[-1]

    assert refused.status is SettleStatus.REFUSED
    assert refused.why.startswith("DeadLetterQueueFull: ")
    assert repr(bench.dlq.name) in refused.why
    left = held[-1].letter
    assert left is not None
    with pytest.raises(DeadLetterQueueFull, match=bench.dlq.name):
        await bench.dlq.send(left)
    assert (await scene.broker.depth(scene.queue, group="shop")).in_flight == sum(
        answer.status is SettleStatus.REFUSED for answer in answers
    )


async def test_a_consumer_that_the_server_knows_nothing_of_is_noticed_at_the_next_heartbeat(scene: Scene) -> None:
    worker: Any = await scene.worker()
    waiting = asyncio.ensure_future(worker.fetch(1, wait=PATIENCE))
    while not await scene.broker._office.link.count(scene.queue, consumers=True):  # noqa: ASYNC110, SLF001
        await asyncio.sleep(0.01)
    channel = await worker.intake.channel()
    await channel.basic_cancel(worker.intake.consumer)  # as if the server had forgotten it
    await worker.heartbeat()
    await scene.publish(b"after")

    assert [each.message.body for each in await waiting] == [b"after"]
    assert any("no such consumer" in event.why for event in scene.events if isinstance(event, BrokerFaulted))


async def test_a_heartbeat_lets_a_consumer_be_that_is_just_being_begun(scene: Scene) -> None:
    worker: Any = await scene.worker()
    waiting = asyncio.create_task(worker.fetch(1, wait=PATIENCE))
    while worker.intake.consumer is None:  # noqa: ASYNC110 - it is one turn of the loop that is waited for
        await asyncio.sleep(0)
    await worker.intake.look_for_faults()
    await scene.publish(b"1")

    assert [each.message.body for each in await waiting] == [b"1"]
    assert await consumers(scene.channel, scene.queue) == 1
    assert not [event for event in scene.events if isinstance(event, BrokerFaulted)]


async def test_a_consumer_that_nobody_knows_any_more_is_ended_and_what_it_was_sent_comes_again(scene: Scene) -> None:
    worker: Any = await scene.worker()
    assert await worker.fetch(1, wait=timedelta(milliseconds=1)) == ()
    worker.intake.consumer = None
    await scene.publish(b"1")

    assert (await scene.take(worker)).message.body == b"1"
    async with asyncio.timeout(PATIENCE.total_seconds()):
        while await consumers(scene.channel, scene.queue) > 1:  # one that is sent nothing is not found out yet
            await scene.publish(b"more")
            await scene.take(worker)
