"""Run an app in a test: memory broker, manual clock, no network, no waiting.

async with redrive.testing.run(app) as shop:
    await shop.publish("orders", {"id": 1})
    await shop.drain()
assert shop.letters.one().reason == "attempts_exhausted" and shop.delays == [1, 2, 4]
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from redrive.app import App
from redrive.brokers.memory import MemoryBroker
from redrive.core.event import BatchSettled, ConsumerPaused, ConsumerResumed, Event, LetterWritten
from redrive.core.letter import DeadLetter
from redrive.testing.clock import ManualClock

PROBES = 100


class Letters(list[DeadLetter]):
    """The dead letters of a rehearsal, in the order they were written."""

    def one(self) -> DeadLetter:
        """The only letter. Raises `AssertionError` that tells what there is instead."""
        if len(self) != 1:
            found = ", ".join(f"{letter.reason} ({letter.error_type})" for letter in self) or "none"
            raise AssertionError(f"expected one dead letter, found {len(self)}: {found}")
        return self[0]


class Rehearsal:
    """An app at work in a test. `letters` and `delays` (seconds before each retry) tell what happened."""

    def __init__(self, app: App, broker: MemoryBroker, clock: ManualClock) -> None:
        self.broker = broker
        self.clock = clock
        self.letters = Letters()
        self.delays: list[float] = []
        self.events: list[Event] = []
        self._app = app
        self._paused: set[str] = set()
        self._changed = asyncio.Event()
        app.bus.subscribe(self._hear)

    async def publish(self, queue: str, payload: object, **options: Any) -> str:
        """As `App.publish`."""
        return await self._app.publish(queue, payload, **options)

    async def drain(self) -> None:
        """Work until nothing is left to do, jumping to every due time and over every pause of a breaker.

        Raises `TimeoutError` if a breaker is still open after a hundred jumps: its handler does not recover.
        """
        for _ in range(PROBES):
            await self._settled()
            if self._paused:
                self._jump(self.clock.next_wake_at())
                await _let_others_run()
                continue
            due_at = self.broker.next_due_at()
            if due_at is None:
                return
            while due_at is not None and not self._paused:
                self._jump(due_at)
                await self._settled()
                due_at = self.broker.next_due_at()
        queues = ", ".join(sorted(self._paused)) or "a queue"
        raise TimeoutError(
            f"the breaker of {queues} is still open: its handler does not recover;"
            " breaker=None at the consumer switches it off in a test"
        )

    async def _settled(self) -> None:
        """Return when the broker has nothing to hand out, or a consumer holds back."""
        idle = asyncio.ensure_future(self.broker.idle())
        while not idle.done() and not self._paused:
            self._changed.clear()
            changed = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait((idle, changed), return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
        idle.cancel()

    def _jump(self, at: Any) -> None:
        if at is not None and at > self.clock.now():
            self.clock.advance(at - self.clock.now())

    def _hear(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, LetterWritten):
            self.letters.append(event.letter)
        elif isinstance(event, BatchSettled):
            self.letters.extend(event.letters)
            self.delays.extend(failed.retry_in for failed in event.failures())
        elif isinstance(event, ConsumerPaused):
            self._paused.add(event.queue)
        elif isinstance(event, ConsumerResumed):
            self._paused.discard(event.queue)
        self._changed.set()


@contextlib.asynccontextmanager
async def run(app: App) -> AsyncIterator[Rehearsal]:
    """Run an app's consumers on a memory broker under a manual clock, whatever broker it names."""
    clock = ManualClock()
    broker = MemoryBroker(clock=clock)
    twin = app.attach(broker, clock=clock)
    rehearsal = Rehearsal(twin, broker, clock)
    ticking: asyncio.Task[None] | None = None
    try:
        async with twin.worker():
            try:
                yield rehearsal
            finally:
                ticking = asyncio.create_task(_tick(clock))
    finally:
        if ticking is not None:
            ticking.cancel()


async def _tick(clock: ManualClock) -> None:
    """Let time pass by itself, for a worker that is asked to stop and may be waiting for the clock."""
    while True:
        await _let_others_run()
        clock.advance("100ms")


async def _let_others_run() -> None:
    for _ in range(50):
        await asyncio.sleep(0)
