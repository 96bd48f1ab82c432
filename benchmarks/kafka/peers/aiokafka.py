"""aiokafka: getmany, handle, commit. It has neither retry nor DLQ."""

import importlib
from typing import Any

from benchmarks import loops
from benchmarks.measure import Meter

BATCH = 500


def drain(url: str, messages: int, *, loop: str) -> dict[str, Any]:
    return loops.run(loop, _drain(url, messages))


async def _handle(_body: bytes) -> None:
    pass


async def _drain(url: str, messages: int) -> dict[str, Any]:
    meter = Meter(messages)
    consumer = importlib.import_module("aiokafka").AIOKafkaConsumer(
        "orders",
        bootstrap_servers=url.partition("://")[2],
        group_id="shop",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    async with consumer:
        while True:
            batches = await consumer.getmany(timeout_ms=1000, max_records=BATCH)
            for batch in batches.values():
                for message in batch:
                    await _handle(message.value)
            if batches:
                await consumer.commit()
            if meter.add(sum(map(len, batches.values()))):
                break
    return meter.result()
