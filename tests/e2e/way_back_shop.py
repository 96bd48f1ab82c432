"""A shop with everything in one process: a broker, a store on a file, a worker, a collector, a redriver."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redrive.app import App
from redrive.clock import SystemClock
from redrive.core.delivery import Delivery
from redrive.core.life import LetterState
from redrive.core.message import Message
from redrive.core.place import named
from redrive.core.query import Query
from redrive.core.redrive import Redrive, RedriveOutcome
from redrive.core.stored import StoredLetter
from redrive.core.wire import dump_outcome
from redrive.triage import redrives
from redrive.triage.desk import Desk
from redrive.triage.redriver import Redriver
from redrive.triage.selection import Selection, Wanted, select
from redrive.wiring import collector, connect, open_store

if TYPE_CHECKING:
    from redrive.triage.drive import Told

LOOK = 0.01
LIMIT = 120  # seconds after which something hangs

Fault = Callable[[int, int], Exception | None]
"""What an order's handler raises in a generation, if anything."""


def works(_order: int, _generation: int) -> None:
    return None


def broken(_order: int, _generation: int) -> Exception:
    return ValueError("no such customer")


class Shop:
    """`fault` is what is wrong with the handler now, `runs` how often it saw each (order, generation)."""

    def __init__(self, folder: Path, url: str) -> None:
        clock = SystemClock()
        self.url = url
        self.broker = connect(url)
        self.store = open_store(f"sqlite:///{folder / 'letters.db'}")
        self.desk = Desk(self.store, clock, "sam")
        self.collector = collector(self.broker, self.store, queues=["orders"])
        self.fault: Fault = works
        self.runs: Counter[tuple[int, int]] = Counter()
        self.may_run = asyncio.Event()
        self.may_run.set()
        self.told: list[Told] = []
        self._redriver = Redriver(self.store, {self.broker.name: self.broker}, clock=clock, tell=self.told.append)

    def worker(self, version: str = "v2") -> Any:
        """A worker of this version, for as long as the block lasts."""
        app = App(self.url, name="shop", version=version)

        @app.consumer("orders", retry=[0.01, 0.01], breaker=None)
        async def charge(order: int, delivery: Delivery) -> None:
            await self.may_run.wait()
            self.runs[order, delivery.generation] += 1
            fault = self.fault(order, delivery.generation)
            if fault is not None:
                raise fault

        return app.worker()

    async def die(self, count: int) -> None:
        """Letters of so many orders, collected. They die on version v1."""
        self.fault = broken
        await self.broker.publish("orders", [Message("", "orders", b"%d" % order) for order in range(count)])
        async with self.worker("v1"):
            await self.until(self._open, count)
        self.fault = works
        self.runs.clear()

    async def select(self, **wanted: Any) -> Selection:
        return await select(self.desk, Wanted(**(wanted or {"query": Query(queue="orders")})))

    async def plan(self, selection: Selection | None = None, **terms: Any) -> redrives.Plan:
        asked = redrives.Terms(**terms)
        chosen = selection or await self.select(query=Query(queue="orders"), states=asked.states)
        return await redrives.plan(chosen, asked, brokers={self.broker.name: self.broker})

    async def begin(self, selection: Selection | None = None, **terms: Any) -> Redrive:
        return await redrives.create(self.desk, await self.plan(selection, **terms))

    async def carry_out(self, redrive: Redrive) -> str:
        """Run the redriver until the redrive no longer runs; its verdict."""
        async with asyncio.timeout(LIMIT):
            await self._redriver.run(redrive.redrive_id)
        return await self.verdict(redrive)

    async def verdict(self, redrive: Redrive) -> str:
        return (await redrives.show(self.desk, redrive.redrive_id)).verdict

    async def states(self) -> dict[str, int]:
        return dict((await self.store.stats()).by_state)

    async def stored(self) -> dict[int, StoredLetter]:
        """The letter of each order."""
        rows = await self.store.select(Query(), limit=10_000)
        found = [await self.store.get(row.letter_id) for row in rows]
        return {int(one.letter.payload or b""): one for one in found}

    async def lives(self) -> set[tuple[LetterState, int]]:
        """The states and generations that there are."""
        return {(row.life.state, row.life.generation) for row in await self.store.select(Query(), limit=10_000)}

    async def report(self, outcome: RedriveOutcome) -> None:
        """Tell an outcome as a worker does, however late or often."""
        queue = named(self.broker.capabilities.outcomes, "orders")
        await self.broker.publish(queue, [Message("", queue, dump_outcome(outcome))])

    async def settled(self) -> None:
        """Return when every message is done or dead, and everything about them is collected."""
        await self.until(self._left, 0)
        await self.collector.drained()

    async def _left(self) -> int:
        depth = await self.broker.depth("orders", group="shop")
        return depth.waiting + depth.in_flight + depth.scheduled

    async def until_told(self, waiting: str) -> None:
        """Return when a redriver says that it waits for this reason."""

        async def is_told() -> bool:
            return any(one.waiting == waiting for one in self.told)

        await self.until(is_told, wanted=True)

    async def until(self, look: Callable[[], Awaitable[object]], wanted: object) -> None:
        """Return when what is looked at is as wanted."""
        async with asyncio.timeout(LIMIT):
            while await look() != wanted:  # noqa: ASYNC110 - looking is how a store is asked
                await asyncio.sleep(LOOK)

    async def _open(self) -> int:
        return (await self.states()).get("open", 0)


@asynccontextmanager
async def open_shop(folder: Path, url: str) -> AsyncIterator[Shop]:
    shop = Shop(folder, url)
    try:
        async with shop.collector:
            yield shop
    finally:
        await shop.store.aclose()
        await shop.broker.aclose()
