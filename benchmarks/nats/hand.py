"""What a good engineer would write by hand: fetch 500, handle them, ack them. The limit, on nats-py.

The acknowledgement is the same as Redrive's: a word for each message, and an answer to the last of a batch.
"""

import asyncio
from typing import Any

import nats
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig

from benchmarks import loops
from benchmarks.load import bodies
from benchmarks.measure import Meter

QUEUE = "orders"
GROUP = "shop"
BATCH = 500
PATIENCE = 60.0  # seconds


def fill(url: str, messages: int, *, spared: int = 0) -> None:
    """A stream in which so many messages wait."""
    asyncio.run(_fill(url, messages, spared=spared))


def drain(url: str, messages: int, *, loop: str) -> dict[str, Any]:
    """Fetch, handle, ack; no retry, no DLQ."""
    return loops.run(loop, _drain(url, messages))


async def _handle(_body: bytes) -> None:
    pass


async def _fill(url: str, messages: int, *, spared: int) -> None:
    client = await nats.connect(url)
    stream = client.jetstream()
    await stream.add_stream(StreamConfig(name=QUEUE, subjects=[QUEUE], allow_direct=True))
    for first in range(0, messages, BATCH):
        for body in bodies(first, min(BATCH, messages - first), spared=spared):
            await client.publish(QUEUE, body)
        await client.flush()
    async with asyncio.timeout(PATIENCE):
        while (await stream.stream_info(QUEUE)).state.messages < messages:  # noqa: ASYNC110 - the server's event
            await asyncio.sleep(0.01)
    await client.close()


async def _drain(url: str, messages: int) -> dict[str, Any]:
    meter = Meter(messages)
    client = await nats.connect(url)
    config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, max_deliver=-1, max_ack_pending=-1)
    pull = await client.jetstream().pull_subscribe(QUEUE, durable=GROUP, stream=QUEUE, config=config)
    while True:
        batch = await pull.fetch(BATCH, timeout=5)
        for message in batch:
            await _handle(message.data)
        for message in batch[:-1]:
            await message.ack()
        await batch[-1].ack_sync()
        if meter.add(len(batch)):
            break
    info = await pull.consumer_info()
    assert (info.num_pending, info.num_ack_pending) == (0, 0), info
    await client.close()
    return meter.result()
