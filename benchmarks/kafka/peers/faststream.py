"""FastStream on confluent-kafka: a call and a commit per message, or both per batch."""

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
    confluent = importlib.import_module("faststream.confluent")
    meter, done = Meter(messages), asyncio.Event()

    async def handle(body: Any) -> None:
        if meter.add(len(body) if batch else 1):
            done.set()

    broker = confluent.KafkaBroker(url.partition("://")[2], apply_types=False, logger=None)
    broker.subscriber(
        QUEUE,
        group_id="shop",
        auto_offset_reset="earliest",
        ack_policy=faststream.AckPolicy.NACK_ON_ERROR,
        **({"batch": True, "max_records": BATCH} if batch else {}),
    )(handle)
    async with broker:
        await broker.start()
        await done.wait()
    return meter.result()
