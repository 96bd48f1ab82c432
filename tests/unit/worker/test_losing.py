"""A worker hears from the heartbeat that deliveries have passed to somebody else."""

import asyncio
import threading

from redrive.app import App
from redrive.core.delivery import Delivery
from redrive.core.event import BatchSettled, DeliveryLost, Event
from redrive.core.message import Message


async def publish(app: App, count: int) -> None:
    await app.broker.publish("orders", [Message("", "orders", b"%d" % number) for number in range(count)])


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


async def test_the_neighbours_of_a_lost_delivery_in_a_batch_run_again_at_once_and_spend_nothing() -> None:
    app = App("memory://", name="shop")
    batches: list[list[Delivery]] = []
    began, done = asyncio.Event(), asyncio.Event()
    lost: list[DeliveryLost] = []

    @app.batch_consumer("orders", size=4, concurrency=1)
    async def handle(deliveries: list[Delivery]) -> None:
        batches.append(deliveries)
        if len(batches) == 1:
            began.set()
            await asyncio.Event().wait()

    def hear(event: Event) -> None:
        if isinstance(event, DeliveryLost):
            lost.append(event)
        elif isinstance(event, BatchSettled):
            done.set()

    app.bus.subscribe(hear)
    async with app:
        await publish(app, 4)
        async with app.worker() as crew:
            await began.wait()
            crew.workers[0].lose(batches[0][1:2])
            await done.wait()
            left = await app.broker.depth("orders", group="shop")

    first, second = batches
    assert [delivery.message.body for delivery in second] == [b"0", b"2", b"3"]
    assert [delivery.attempt for delivery in second] == [1, 1, 1]
    assert [event.message_id for event in lost] == [first[1].message.id]
    assert left.in_flight == 1  # the lost one, which is somebody else's


async def test_a_delivery_that_is_lost_while_its_half_of_a_batch_waits_does_not_run() -> None:
    app = App("memory://", name="shop")
    batches: list[list[Delivery]] = []
    done = asyncio.Event()
    lost: list[DeliveryLost] = []

    @app.batch_consumer("orders", size=4, concurrency=1, timeout="50ms")
    async def handle(deliveries: list[Delivery]) -> None:
        batches.append(deliveries)
        if len(batches) == 1:
            await asyncio.Event().wait()
        if len(batches) == 2:
            crew.workers[0].lose(batches[0][3:])

    def hear(event: Event) -> None:
        if isinstance(event, DeliveryLost):
            lost.append(event)
        elif isinstance(event, BatchSettled) and len(batches) == 3:
            done.set()

    app.bus.subscribe(hear)
    async with app:
        await publish(app, 4)
        async with app.worker() as crew:
            await done.wait()

    assert [[delivery.message.body for delivery in batch] for batch in batches] == [
        [b"0", b"1", b"2", b"3"],
        [b"0", b"1"],
        [b"2"],
    ]
    assert [event.message_id for event in lost] == [batches[0][3].message.id]


async def test_a_batch_in_a_thread_goes_on_when_one_of_it_is_lost_and_the_broker_tells_which() -> None:
    app = App("memory://", name="shop")
    batches: list[list[Delivery]] = []
    began, done = asyncio.Event(), asyncio.Event()
    may_end = threading.Event()
    settled: list[BatchSettled] = []
    loop = asyncio.get_running_loop()

    @app.batch_consumer("orders", size=4, concurrency=1)
    def handle(deliveries: list[Delivery]) -> None:
        batches.append(deliveries)
        loop.call_soon_threadsafe(began.set)
        may_end.wait()

    def hear(event: Event) -> None:
        if isinstance(event, BatchSettled):
            settled.append(event)
            done.set()

    app.bus.subscribe(hear)
    async with app:
        await publish(app, 4)
        async with app.worker() as crew:
            await began.wait()
            taken = batches[0][:1]
            await crew.workers[0].subscription.release(taken)
            crew.workers[0].lose(taken)
            may_end.set()
            await done.wait()

    assert len(batches[0]) == 4
    assert (settled[0].acked, settled[0].lost) == (3, 1)
