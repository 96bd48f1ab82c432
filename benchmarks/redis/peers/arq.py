"""arq: a hundred jobs at once, polled every 5 ms, without results."""

import asyncio
import importlib
from typing import Any

from benchmarks import loops
from benchmarks.load import bodies
from benchmarks.measure import Meter


def fill(url: str, messages: int) -> None:
    asyncio.run(_fill(url, messages))


def drain(url: str, messages: int, *, loop: str) -> dict[str, Any]:
    return loops.run(loop, _drain(url, messages))


async def _fill(url: str, messages: int) -> None:
    connections = importlib.import_module("arq.connections")
    pool = await connections.create_pool(connections.RedisSettings.from_dsn(url))
    for body in bodies(0, messages):
        await pool.enqueue_job("handle", body)
    await pool.aclose()


async def _drain(url: str, messages: int) -> dict[str, Any]:
    meter = Meter(messages)

    async def handle(_context: dict[str, Any], _body: bytes) -> None:
        meter.add(1)

    arq = importlib.import_module("arq.worker")
    worker = arq.Worker(
        [arq.func(handle, name="handle")],
        redis_settings=importlib.import_module("arq.connections").RedisSettings.from_dsn(url),
        burst=True,
        max_jobs=100,
        poll_delay=0.005,
        keep_result=0,
        handle_signals=False,
        log_results=False,
    )
    await worker.main()
    await worker.close()
    return meter.result()
