"""Settling many at once: what one of them meets on its way is not the others' business."""

from asyncio import gather
from typing import Any

from redrive.brokers.rabbitmq.link import Posting
from redrive.brokers.rabbitmq.names import fan_of
from redrive.brokers.rabbitmq.parcel import write
from redrive.core.duration import NOW
from redrive.core.message import Message
from redrive.core.outcome import Settlement, SettleStatus
from redrive.core.place import DeadLetterPlace
from redrive.testing.conformance.bench import Bench
from tests.rabbitmq.conftest import Scene


async def test_an_output_that_has_no_way_to_its_queue_is_refused_and_the_rest_go_through(scene: Scene) -> None:
    away = f"{scene.queue}.invoices"
    await scene.channel.exchange_declare(fan_of(away), exchange_type="direct", durable=True)  # somebody else's
    worker = await scene.worker()
    await scene.publish(b"1", b"2", b"3")
    held = [await scene.take(worker) for _ in range(3)]
    items = [
        Settlement(held[0]),
        Settlement(held[1], output=Message("", away, b"invoice")),
        Settlement(held[2], output=Message("", f"{scene.queue}.receipts", b"receipt")),
    ]
    answers = await worker.settle(items)

    assert [answer.status for answer in answers] == [SettleStatus.DONE, SettleStatus.REFUSED, SettleStatus.DONE]
    assert "inequivalent" in answers[1].why
    assert (await scene.broker.depth(scene.queue, group="shop")).in_flight == 1


async def test_of_two_copies_of_one_message_the_one_that_no_queue_takes_is_refused(scene: Scene) -> None:
    await scene.publish(b"so that the queue is there")
    parcel = write(Message("one", scene.queue, b"body"))
    postings = [Posting("", queue, parcel) for queue in (scene.queue, "nowhere", scene.queue, "nowhere")]
    answers = await scene.broker._office.link.publish(postings)  # noqa: SLF001

    assert [answer is None for answer in answers] == [True, False, True, False]


async def test_two_who_write_copies_of_one_message_at_the_same_time_are_told_apart(scene: Scene) -> None:
    await scene.publish(b"so that the queue is there")
    link = scene.broker._office.link  # noqa: SLF001
    parcel = write(Message("one", scene.queue, b"body"))
    answers = await gather(*(link.publish([Posting("", queue, parcel)]) for queue in ("nowhere", scene.queue) * 5))

    assert [answer is None for (answer,) in answers] == [False, True] * 5


async def test_what_was_held_and_set_free_is_no_suspect(scene: Scene, bench: Bench) -> None:
    worker: Any = await scene.worker(dlq=DeadLetterPlace(enabled=False, off="hold"))
    await scene.publish(b"1")
    await worker.settle([bench.give_up(await scene.take(worker), worker)])
    freed = await scene.broker.free(scene.queue, group="shop")
    await scene.broker.depth(scene.queue, group="shop")  # a look: it comes again

    assert freed == 1
    assert [each.message.body for each in await worker.fetch(1, wait=NOW)] == [b"1"]
