"""streaq: sixteen tasks at once, prefetching 500, without results."""

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
    worker, task = _task(url, Meter(messages), asyncio.Event())
    async with worker:
        await worker.enqueue_many([task.enqueue(body.decode()) for body in bodies(0, messages)])


async def _drain(url: str, messages: int) -> dict[str, Any]:
    meter, done = Meter(messages), asyncio.Event()
    worker, _ = _task(url, meter, done)
    running = asyncio.create_task(worker.run_async())
    await done.wait()
    running.cancel()
    await asyncio.wait([running])
    return meter.result()


def _task(url: str, meter: Meter, done: asyncio.Event) -> tuple[Any, Any]:
    worker = importlib.import_module("streaq").Worker(url, concurrency=16, prefetch=500, handle_signals=False)

    async def handle(_body: str) -> None:
        if meter.add(1):
            done.set()

    return worker, worker.task(handle, ttl=0)
