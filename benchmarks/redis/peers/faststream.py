"""FastStream on a stream: a call and an ack per message, or both per batch. Acks after success, as its docs advise."""

import asyncio
import importlib
from typing import Any

from benchmarks import loops
from benchmarks.load import bodies
from benchmarks.measure import Meter

QUEUE = "orders"
BATCH = 500


def fill(url: str, messages: int) -> None:
    asyncio.run(_fill(url, messages))


def drain(url: str, messages: int, *, loop: str, batch: bool) -> dict[str, Any]:
    return loops.run(loop, _drain(url, messages, batch=batch))


async def _fill(url: str, messages: int) -> None:
    client = importlib.import_module("redis.asyncio").Redis.from_url(url)
    async with _broker(url) as broker:
        for first in range(0, messages, BATCH):
            async with client.pipeline(transaction=False) as pipeline:
                for body in bodies(first, min(BATCH, messages - first)):
                    await broker.publish(body, stream=QUEUE, pipeline=pipeline)
                await pipeline.execute()
    await client.xgroup_create(QUEUE, "shop", id="0")
    await client.aclose()


async def _drain(url: str, messages: int, *, batch: bool) -> dict[str, Any]:
    faststream = importlib.import_module("faststream")
    stream = importlib.import_module("faststream.redis").StreamSub
    meter, done = Meter(messages), asyncio.Event()

    async def handle(body: Any) -> None:
        if meter.add(len(body) if batch else 1):
            done.set()

    broker = _broker(url)
    place = stream(QUEUE, group="shop", consumer="one", max_records=BATCH, batch=batch)
    broker.subscriber(stream=place, ack_policy=faststream.AckPolicy.NACK_ON_ERROR)(handle)
    async with broker:
        await broker.start()
        await done.wait()
    return meter.result()


def _broker(url: str) -> Any:
    return importlib.import_module("faststream.redis").RedisBroker(url, apply_types=False, logger=None)
