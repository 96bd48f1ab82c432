"""Redrive with little to do: how soon a handler begins, and how late a retry."""

import asyncio
import random
import subprocess
import time
from typing import Any

from benchmarks.measure import ROOT, command
from benchmarks.sqlite.redrive import QUEUE, app_on
from redrive.app import App
from redrive.core.message import Message
from redrive.core.outcome import RetryLater

GAP = 0.02  # seconds between two messages, on average
RETRY_AFTER = 0.05


class Times(list[float]):
    """Durations in seconds; `complete` is set when so many are noted."""

    def __init__(self, wanted: int) -> None:
        super().__init__()
        self._wanted = wanted
        self.complete = asyncio.Event()

    def note(self, seconds: float) -> None:
        self.append(seconds)
        if len(self) >= self._wanted:
            self.complete.set()


def wait_for_handler(path: str, messages: int, *, apart: bool) -> dict[str, Any]:
    """How long after its publishing a message is handled; `apart`: it is published by another process."""
    app = app_on(path)
    waited = Times(messages)

    @app.consumer(QUEUE)
    async def handle(body: bytes) -> None:
        waited.note(time.monotonic() - float(body))

    async def run() -> None:
        async with app.worker():
            await (_publish_apart(path, messages) if apart else _publish(app, messages))
            await waited.complete.wait()

    asyncio.run(run())
    return {"times": waited}


def wait_for_retry(path: str, messages: int) -> dict[str, Any]:
    """How late a retry begins."""
    app = app_on(path)
    failed: dict[str, float] = {}
    late = Times(messages)

    @app.consumer(QUEUE, retry=[RETRY_AFTER])
    async def handle(message: Message) -> None:
        now = time.monotonic()
        if message.id not in failed:
            failed[message.id] = now
            raise RetryLater(why="once more")
        late.note(now - failed[message.id] - RETRY_AFTER)

    async def run() -> None:
        async with app.worker():
            await _publish(app, messages)
            await late.complete.wait()

    asyncio.run(run())
    return {"times": late}


def publish(path: str, messages: int) -> None:
    """Publish the time, again and again, from a process without consumers."""

    async def run() -> None:
        async with app_on(path) as app:
            await _publish(app, messages)

    asyncio.run(run())


async def _publish(app: App, messages: int) -> None:
    for _ in range(messages):
        await asyncio.sleep(random.uniform(0, 2 * GAP))
        await app.publish(QUEUE, repr(time.monotonic()))


async def _publish_apart(path: str, messages: int) -> None:
    words = command(f"{__name__}:publish", path=path, messages=messages)
    publisher = await asyncio.create_subprocess_exec(*words, cwd=ROOT, stdout=subprocess.DEVNULL)
    assert await publisher.wait() == 0
