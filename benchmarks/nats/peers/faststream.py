"""FastStream on a pull consumer: a call and an ack per message, or a call per batch."""

import asyncio
import importlib
from typing import Any

from benchmarks import loops
from benchmarks.measure import Meter

QUEUE = "orders"
BATCH = 500


def drain(url: str, messages: int, *, loop: str, batch: bool) -> dict[str, Any]:
    return loops.run(loop, _drain(url, messages, batch=batch))


async def _drain(url: str, messages: int, *, batch: bool) -> dict[str, Any]:
    faststream = importlib.import_module("faststream")
    streaming = importlib.import_module("faststream.nats")
    meter, done = Meter(messages), asyncio.Event()

    async def handle(body: Any) -> None:
        if meter.add(len(body) if batch else 1):
            done.set()

    broker = streaming.NatsBroker(url, apply_types=False, logger=None)
    broker.subscriber(
        QUEUE,
        stream=streaming.JStream(QUEUE, declare=False),
        durable="shop",
        pull_sub=streaming.PullSub(batch_size=BATCH, batch=batch),
        ack_policy=faststream.AckPolicy.NACK_ON_ERROR,
    )(handle)
    async with broker:
        await broker.start()
        await done.wait()
    return meter.result()
