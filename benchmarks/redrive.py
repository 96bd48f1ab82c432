"""Redrive as a user runs it: an app, a handler, `app.run()`; leases, heartbeat, breaker, metrics and logs are on."""

import asyncio
import signal
import sys
from typing import Any

from prometheus_client import CollectorRegistry

from benchmarks.load import FAILS, Failed, bodies
from benchmarks.measure import Meter
from redrive.app import App
from redrive.core.event import BatchSettled, Event
from redrive.core.message import Message
from redrive.core.ports import Depth
from redrive.observe.logs import set_up_logs
from redrive.observe.metrics import Metrics

QUEUE = "orders"
CHUNK = 1000


def fill(url: str, messages: int) -> None:
    """Publish until so many messages wait."""
    asyncio.run(_fill(app_on(url), messages))


def drain(url: str, messages: int, *, whole: bool = True, tracing: bool = False) -> dict[str, Any]:
    """Handle messages as bytes; `whole` means that nothing must be left."""
    app = app_on(url, tracing=tracing)

    @app.consumer(QUEUE)
    async def handle(body: bytes) -> None:
        pass

    return _measure(app, messages, whole=whole)


def drain_batches(url: str, messages: int, *, size: int) -> dict[str, Any]:
    """Handle messages as lists of bytes, up to `size` at once."""
    app = app_on(url)

    @app.batch_consumer(QUEUE, size=size)
    async def handle(bodies: list[bytes]) -> None:
        pass

    return _measure(app, messages)


def drain_typed(url: str, messages: int) -> dict[str, Any]:
    """Handle messages as a dict: the payload is decoded from JSON."""
    app = app_on(url)

    @app.consumer(QUEUE)
    async def handle(order: dict[str, object]) -> None:
        pass

    return _measure(app, messages)


def drain_failing(url: str, messages: int, *, log_level: str, dead: int) -> dict[str, Any]:
    """Messages that are marked, `dead` of them, fail three times and become dead letters."""
    app = app_on(url, log_level=log_level)

    @app.consumer(QUEUE, retry=[0, 0])
    async def handle(body: bytes) -> None:
        if FAILS in body:
            raise Failed("this message always fails")

    return _measure(app, messages, dead=dead)


def app_on(url: str, *, log_level: str = "info", tracing: bool = False) -> App:
    set_up_logs(level=log_level, form="json", stream=sys.stderr)
    app = App(url, name="shop", tracing=tracing)
    app.bus.subscribe(Metrics(CollectorRegistry()))
    return app


async def _fill(app: App, messages: int) -> None:
    async with app:
        there = (await _depth(app)).waiting
        for first in range(there, messages, CHUNK):
            chunk = bodies(first, min(CHUNK, messages - first))
            await app.broker.publish(QUEUE, [Message(id="", queue=QUEUE, body=body) for body in chunk])


async def _depth(app: App) -> Depth:
    for queue, group in await app.broker.queues():
        if queue == QUEUE:
            return await app.broker.depth(QUEUE, group=group)
    return Depth()


def _measure(app: App, messages: int, *, whole: bool = True, dead: int = 0) -> dict[str, Any]:
    """Run the app until so many messages are acked or dead; check that none was left out."""
    meter = Meter(messages)

    def count(event: Event) -> None:
        if isinstance(event, BatchSettled) and meter.add(event.acked + event.dead):
            signal.raise_signal(signal.SIGTERM)

    app.bus.subscribe(count)
    app.run(collect=False)
    asyncio.run(_check(app, whole=whole, dead=dead))
    return meter.result()


async def _check(app: App, *, whole: bool, dead: int) -> None:
    async with app:
        depth = await _depth(app)
        assert depth.in_flight == depth.scheduled == 0, depth
        assert not (whole and depth.waiting), depth
        assert depth.dead == dead, depth
