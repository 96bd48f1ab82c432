"""Redrive with little to do: how soon a handler begins, and how late a retry."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from benchmarks.pace import Times, call_apart, moments, since
from benchmarks.redrive import QUEUE, app_on
from redrive.app import App
from redrive.core.message import Message
from redrive.core.outcome import RetryLater

RETRY_AFTER = 0.05

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def wait_for_handler(
    url: str, messages: int, *, publisher: str | None = None, loop: LoopFactory | None = None
) -> dict[str, Any]:
    """How long after its publishing a message is handled; `publisher` is a program that publishes from elsewhere."""
    app = app_on(url)
    waited = Times(messages)

    @app.consumer(QUEUE)
    async def handle(body: bytes) -> None:
        waited.note(since(body))

    async def run() -> None:
        async with app.worker():
            if publisher is None:
                await _publish(app, messages)
            else:
                await call_apart(publisher, url=url, messages=messages)
            await waited.complete.wait()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())
    return {"times": waited}


def wait_for_retry(url: str, messages: int, *, loop: LoopFactory | None = None) -> dict[str, Any]:
    """How late a retry begins."""
    app = app_on(url)
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

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())
    return {"times": late}


def publish(url: str, messages: int) -> None:
    """Publish now and then, from a process without consumers."""

    async def run() -> None:
        async with app_on(url) as app:
            await _publish(app, messages)

    asyncio.run(run())


async def _publish(app: App, messages: int) -> None:
    async for body in moments(messages):
        await app.publish(QUEUE, body)
