"""A desk for tests: memory broker, memory store, manual clock, and a consumer that does as it is told."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from redrive.brokers.memory import MemoryBroker
from redrive.core.delivery import Delivery
from redrive.core.letter import DeadLetter
from redrive.core.ports import Options
from redrive.core.query import Query
from redrive.core.redrive import Redrive, RedriveOutcome
from redrive.core.stored import StoredLetter
from redrive.stores.memory import MemoryStore
from redrive.testing.clock import ManualClock
from redrive.triage import redrives
from redrive.triage.desk import Desk
from redrive.triage.drive import Told
from redrive.triage.redriver import Redriver
from redrive.triage.redrives import Terms
from redrive.triage.selection import Selection, Wanted, select
from tests.unit.core.letters import a_letter

Result = TypeVar("Result")
Verdict = Callable[[Delivery], str | None]
"""The fingerprint with which a delivery fails, or None if it succeeds."""


class Bench:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.broker = MemoryBroker(clock=self.clock)
        self.store = MemoryStore(clock=self.clock)
        self.desk = Desk(self.store, self.clock, "sam")
        self.brokers = {"memory": self.broker}
        self.published: list[str] = []
        self.told = list[Told]()

    async def collect(self, count: int, **changes: Any) -> list[DeadLetter]:
        prefix = changes.pop("prefix", "letter")
        payload = changes.pop("payload", "numbered")
        found = [
            a_letter(
                f'{{"order": {number}}}'.encode() if payload == "numbered" else payload,
                **{
                    "letter_id": f"{prefix}-{number}",
                    "original_message_id": f"message-{number}",
                    "broker": "memory",
                    "app_version": "v1",
                    "failed_at": self.clock.now(),
                    **changes,
                },
            )
            for number in range(count)
        ]
        await self.store.collect(found)
        return found

    async def selection(self, **wanted: Any) -> Selection:
        return await select(self.desk, Wanted(**(wanted or {"everything": True})))

    async def states(self) -> dict[str, int]:
        return dict((await self.store.stats()).by_state)

    async def get(self, letter_id: str = "letter-0") -> StoredLetter:
        return await self.store.get(letter_id)

    async def ids(self, query: Query | None = None) -> list[str]:
        return [row.letter_id for row in await self.store.select(query or Query(), limit=10_000)]

    async def consume(self, verdict: Verdict, *, queue: str = "orders", version: str = "v2") -> Sequence[Delivery]:
        """Take what waits for the group, and tell the store at once what became of it."""
        options = Options(owner="consumer", version=version)
        subscription = await self.broker.subscribe(queue, group="shop", options=options)
        await subscription.heartbeat()
        waiting = (await self.broker.depth(queue, group="shop")).waiting
        deliveries = await subscription.fetch(waiting, wait=self.clock.now() - self.clock.now()) if waiting else ()
        for delivery in deliveries:
            self.published.append(f"{delivery.letter_id}:{delivery.generation}")
            await self.tell(delivery, verdict(delivery), version=version)
        return deliveries

    async def tell(self, delivery: Delivery, fingerprint: str | None, *, version: str = "v2") -> None:
        letter_id = delivery.letter_id or ""
        if fingerprint is None:
            outcome = RedriveOutcome(
                letter_id=letter_id,
                generation=delivery.generation,
                succeeded=True,
                reported_at=self.clock.now(),
                queue=delivery.message.queue,
                group=delivery.group,
                message_id=delivery.message.id,
                app_version=version,
            )
            await self.store.collect([], [outcome])
            return
        before = (await self.store.get(letter_id)).letter
        death = replace(before, generation=delivery.generation, fingerprint=fingerprint, attempts=())
        await self.store.collect([death])

    async def while_consuming(
        self, work: Coroutine[Any, Any, Result], verdict: Verdict | None, *, queue: str = "orders"
    ) -> Result:
        """Run something to its end while a consumer works (None: is not there) and time passes."""
        task = asyncio.ensure_future(work)
        while not task.done():
            if verdict is not None:
                await self.consume(verdict, queue=queue)
            for _ in range(20):
                await asyncio.sleep(0)
            self.clock.advance("100ms")
        return task.result()


def succeeds(_: Delivery) -> None:
    return None


def fails_the_same_way(_: Delivery) -> str:
    return "0123456789abcdef"


async def begin(bench: Bench, **terms: Any) -> Redrive:
    asked = Terms(**terms)
    selection = await bench.selection(everything=True, states=asked.states)
    plan = await redrives.plan(selection, asked, brokers=bench.brokers)
    return await redrives.create(bench.desk, plan)


def redriver(bench: Bench, *, chunk: int = 500) -> Redriver:
    return Redriver(bench.store, bench.brokers, clock=bench.clock, tell=bench.told.append, chunk=chunk)


async def verdict(bench: Bench, redrive: Redrive) -> str:
    return (await redrives.show(bench.desk, redrive.redrive_id)).verdict
