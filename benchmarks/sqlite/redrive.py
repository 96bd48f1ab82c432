"""Redrive as a user runs it: an app, a handler, `app.run()`; leases, heartbeat, breaker, metrics and logs are on."""

import asyncio
import signal
import sys
from typing import Any

from prometheus_client import CollectorRegistry

from benchmarks.measure import Meter
from benchmarks.sqlite.load import FAILS, bodies
from redrive.app import App
from redrive.core.event import BatchSettled, Event
from redrive.core.message import Message
from redrive.core.ports import Depth
from redrive.observe.logs import set_up_logs
from redrive.observe.metrics import Metrics

QUEUE = "orders"
CHUNK = 1000


class Failed(Exception):
    """What the handler raises for every tenth message."""


def fill(path: str, messages: int) -> None:
    """A file in which so many messages wait."""
    asyncio.run(_fill(app_on(path), messages))


def drain(path: str, messages: int, *, whole: bool = True) -> dict[str, Any]:
    """Handle messages as bytes; `whole` means that nothing must be left."""
    app = app_on(path)

    @app.consumer(QUEUE)
    async def handle(body: bytes) -> None:
        pass

    return _measure(app, messages, whole=whole)


def drain_typed(path: str, messages: int) -> dict[str, Any]:
    """Handle messages as a dict: the payload is decoded from JSON."""
    app = app_on(path)

    @app.consumer(QUEUE)
    async def handle(order: dict[str, object]) -> None:
        pass

    return _measure(app, messages)


def drain_failing(path: str, messages: int, *, log_level: str) -> dict[str, Any]:
    """Every tenth message fails three times and becomes a dead letter.

    Retries that are due at once come in heaps, which look like an outage: so the breaker is off.
    """
    app = app_on(path, log_level=log_level)

    @app.consumer(QUEUE, retry=[0, 0], breaker=None)
    async def handle(body: bytes) -> None:
        if FAILS in body:
            raise Failed("this message always fails")

    return _measure(app, messages, dead=len([body for body in bodies(0, messages) if FAILS in body]))


def app_on(path: str, *, log_level: str = "info") -> App:
    set_up_logs(level=log_level, form="json", stream=sys.stderr)
    app = App(f"sqlite:///{path}", name="shop")
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
