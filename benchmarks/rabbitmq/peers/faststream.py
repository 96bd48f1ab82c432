"""FastStream on aio-pika: a call and an ack per message."""

import asyncio
import importlib
from typing import Any

from benchmarks import loops
from benchmarks.measure import Meter

QUEUE = "orders"
PREFETCH = 500


def drain(url: str, messages: int, *, loop: str) -> dict[str, Any]:
    return loops.run(loop, _drain(url, messages))


async def _drain(url: str, messages: int) -> dict[str, Any]:
    faststream = importlib.import_module("faststream")
    rabbit = importlib.import_module("faststream.rabbit")
    meter, done = Meter(messages), asyncio.Event()

    async def handle(_body: Any) -> None:
        if meter.add(1):
            done.set()

    channel = rabbit.Channel(prefetch_count=PREFETCH)
    broker = rabbit.RabbitBroker(url, apply_types=False, logger=None, default_channel=channel)
    queue = rabbit.RabbitQueue(QUEUE, queue_type=rabbit.QueueType.QUORUM, durable=True)
    broker.subscriber(queue, ack_policy=faststream.AckPolicy.NACK_ON_ERROR)(handle)
    async with broker:
        await broker.start()
        await done.wait()
    return meter.result()
