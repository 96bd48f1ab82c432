"""Settling many at once: what one of them meets on its way is not the others' business."""

from redrive.brokers.rabbitmq.names import fan_of
from redrive.core.message import Message
from redrive.core.outcome import Settlement, SettleStatus
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
