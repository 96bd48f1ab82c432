"""taskiq on a stream: a hundred tasks at once, reading 500, acks after execution, without results."""

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
    broker, task = _task(url, Meter(messages), asyncio.Event())
    await broker.startup()
    for body in bodies(0, messages):
        await task.kiq(body.decode())
    await broker.shutdown()


async def _drain(url: str, messages: int) -> dict[str, Any]:
    taskiq = importlib.import_module("taskiq")
    receiver = importlib.import_module("taskiq.receiver").Receiver
    meter, done = Meter(messages), asyncio.Event()
    broker, _ = _task(url, meter, done)
    broker.is_worker_process = True
    when_executed = taskiq.AcknowledgeType.WHEN_EXECUTED
    await receiver(broker, max_async_tasks=100, run_startup=True, ack_type=when_executed).listen(done)
    return meter.result()


def _task(url: str, meter: Meter, done: asyncio.Event) -> tuple[Any, Any]:
    broker = importlib.import_module("taskiq_redis").RedisStreamBroker(url, xread_count=500, consumer_id="0")

    async def handle(_body: str) -> None:
        if meter.add(1):
            done.set()

    return broker, broker.register_task(handle, task_name="handle")
