"""What a good engineer would write by hand on aio-pika: consume with a prefetch, handle, ack. The limit."""

import asyncio
from typing import Any

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from benchmarks import loops
from benchmarks.load import FAILS, Failed, bodies
from benchmarks.measure import Meter

QUEUE = "orders"
DLQ = "orders.dlq"
PREFETCH = 500
ATTEMPTS = 3
CHUNK = 500
QUORUM: dict[str, Any] = {"x-queue-type": "quorum"}


def fill(url: str, messages: int, *, spared: int = 0) -> None:
    """A quorum queue in which so many messages wait."""
    asyncio.run(_fill(url, messages, spared))


async def _fill(url: str, messages: int, spared: int) -> None:
    connection = await aio_pika.connect(url)
    async with connection:
        channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
        await channel.declare_queue(QUEUE, durable=True, arguments=QUORUM)
        waiting = []
        for number, body in enumerate(bodies(0, messages, spared=spared)):
            waiting.append(_publish(channel, QUEUE, body, f"m-{number}"))
            if len(waiting) == CHUNK:
                await asyncio.gather(*waiting)
                waiting = []
        await asyncio.gather(*waiting)


def drain(url: str, messages: int, *, loop: str) -> dict[str, Any]:
    """Consume, handle, ack; no retry, no DLQ."""
    return loops.run(loop, _drain(url, messages))


async def _drain(url: str, messages: int) -> dict[str, Any]:
    meter, done = Meter(messages), asyncio.Event()

    async def take(message: AbstractIncomingMessage) -> None:
        await _handle(message.body)
        await message.ack()
        if meter.add(1):
            done.set()

    connection = await aio_pika.connect(url)
    async with connection:
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=PREFETCH)
        queue = await channel.declare_queue(QUEUE, durable=True, arguments=QUORUM)
        await queue.consume(take)
        await done.wait()
    return meter.result()


def drain_failing(url: str, messages: int, *, loop: str, dead: int) -> dict[str, Any]:
    """A failed message is published again at once with its count, or to the DLQ; confirmed, then acked."""
    return loops.run(loop, _drain_failing(url, messages, dead))


async def _drain_failing(url: str, messages: int, dead: int) -> dict[str, Any]:
    meter, done = Meter(messages), asyncio.Event()
    letters = 0
    connection = await aio_pika.connect(url)
    async with connection:
        channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
        await channel.set_qos(prefetch_count=PREFETCH)
        queue = await channel.declare_queue(QUEUE, durable=True, arguments=QUORUM)
        await channel.declare_queue(DLQ, durable=True, arguments=QUORUM)

        async def take(message: AbstractIncomingMessage) -> None:
            nonlocal letters
            finished = 1
            try:
                _fail(message.body)
            except Failed as error:
                attempt = int(str(message.headers.get("attempt", 1)))
                if attempt < ATTEMPTS:
                    finished = 0
                    await _publish(channel, QUEUE, message.body, message.message_id, attempt=attempt + 1)
                else:
                    letters += 1
                    said = {"error_type": type(error).__name__, "error_message": str(error), "retry_count": ATTEMPTS}
                    await _publish(channel, DLQ, message.body, message.message_id, **said)
            await message.ack()
            if meter.add(finished):
                done.set()

        await queue.consume(take)
        await done.wait()
    assert letters == dead, letters
    return meter.result()


async def _publish(channel: AbstractChannel, queue: str, body: bytes, message_id: str | None, **headers: Any) -> None:
    persistent = aio_pika.DeliveryMode.PERSISTENT
    message = aio_pika.Message(body, message_id=message_id, delivery_mode=persistent, headers=headers)
    await channel.default_exchange.publish(message, routing_key=queue, mandatory=True)


async def _handle(_body: bytes) -> None:
    pass


def _fail(body: bytes) -> None:
    if FAILS in body:
        raise Failed("this message always fails")
