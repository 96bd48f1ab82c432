"""A worker hears from the heartbeat that deliveries have passed to somebody else."""

import asyncio

from redrive.app import App
from redrive.core.delivery import Delivery
from redrive.core.event import BatchSettled, DeliveryLost, Event


async def test_a_delivery_that_was_settled_before_the_heartbeat_asked_is_not_lost() -> None:
    app = App("memory://", name="shop")
    settled = asyncio.Event()
    handled: list[Delivery] = []
    lost: list[Event] = []

    @app.consumer("orders")
    async def handle(delivery: Delivery) -> None:
        handled.append(delivery)

    def hear(event: Event) -> None:
        if isinstance(event, DeliveryLost):
            lost.append(event)
        elif isinstance(event, BatchSettled):
            settled.set()

    app.bus.subscribe(hear)
    async with app.worker() as crew:
        await app.publish("orders", b"1")
        await settled.wait()
        crew.workers[0].lose(handled)

    assert len(handled) == 1
    assert lost == []


async def test_the_handler_of_a_lost_delivery_is_cancelled_and_the_loss_is_told_once() -> None:
    app = App("memory://", name="shop")
    running: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()
    cancelled = asyncio.Event()
    lost: list[DeliveryLost] = []

    @app.consumer("orders")
    async def handle(delivery: Delivery) -> None:
        running.set_result(delivery)
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    app.bus.subscribe(lambda event: lost.append(event) if isinstance(event, DeliveryLost) else None)
    async with app.worker() as crew:
        await app.publish("orders", b"1")
        delivery = await running
        crew.workers[0].lose([delivery])
        crew.workers[0].lose([delivery])
        await cancelled.wait()

    assert [event.message_id for event in lost] == [delivery.message.id]
