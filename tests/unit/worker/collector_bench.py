"""A collector on a bench: a memory broker with dead letters, and a store that can be told to misbehave."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from typing import Any

from redrive.brokers.memory import MemoryBroker
from redrive.core.errors import StoreError, StoreUnavailable
from redrive.core.event import (
    Event,
)
from redrive.core.letter import DeadLetter
from redrive.core.ports import Depth
from redrive.core.query import Query
from redrive.core.redrive import RedriveOutcome
from redrive.core.stored import Collected
from redrive.stores.memory import MemoryStore
from redrive.testing.clock import ManualClock
from redrive.worker.collector import GROUP, Collector
from redrive.worker.outcomes import Surroundings
from tests.unit.core.letters import a_letter


class Events(list[Event]):
    def emit(self, event: Event) -> None:
        self.append(event)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self if isinstance(event, kind)]


class Bench:
    """A memory broker with dead letters, and a store that can be told to misbehave."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.broker = MemoryBroker(clock=self.clock)
        self.kept = MemoryStore(clock=self.clock)
        self.events = Events()
        self.away = False
        self.refuses: Callable[[DeadLetter], bool] = lambda _: False
        self.batches: list[int] = []
        self.tended = 0
        self.tending: Callable[[], bool] | None = None

    async def collect(self, letters: Sequence[DeadLetter], outcomes: Sequence[RedriveOutcome] = ()) -> Collected:
        if self.away:
            raise StoreUnavailable("the store is away")
        if any(self.refuses(letter) for letter in letters):
            raise StoreError("a letter cannot be kept")
        self.batches.append(len(letters) + len(outcomes))
        return await self.kept.collect(letters, outcomes)

    async def tend(self) -> bool:
        self.tended += 1
        await asyncio.sleep(0)
        return await self.kept.tend() if self.tending is None else self.tending()

    async def die(self, count: int, *, queue: str = "orders", **changes: Any) -> None:
        for number in range(count):
            letter = a_letter(b"%d" % number, letter_id=f"{queue}-{number}", queue=queue, broker="memory")
            await self.broker.dead_letters(queue).send(replace(letter, **changes))

    def collector(self, **options: Any) -> Collector:
        around = Surroundings(self.clock, self.events, Random(1))
        store: Any = self  # collect and tend are all that is asked of it
        return Collector(self.broker, store, around=around, **options)

    @asynccontextmanager
    async def collecting(self, **options: Any) -> AsyncIterator[Collector]:
        collector = self.collector(**options)
        ticking: asyncio.Future[None] | None = None
        try:
            async with collector:
                try:
                    yield collector
                finally:
                    ticking = asyncio.ensure_future(self.until(lambda: False))  # stopping may wait for the clock
        finally:
            if ticking is not None:
                ticking.cancel()

    async def until(self, reached: Callable[[], bool]) -> None:
        """Let time pass until something is so."""
        while not reached():
            for _ in range(30):
                await asyncio.sleep(0)
            self.clock.advance("500ms")

    async def drained(self, collector: Collector) -> None:
        done = asyncio.ensure_future(collector.drained())
        await self.until(done.done)
        done.result()

    async def ids(self) -> list[str]:
        return sorted(row.letter_id for row in await self.kept.select(Query(), limit=10_000))

    async def depth(self, queue: str = "orders.dlq") -> Depth:
        return await self.broker.depth(queue, group=GROUP)
