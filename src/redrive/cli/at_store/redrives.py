"""Redrives, at a store: carried out here, in the foreground, with a collector where none is alive."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from redrive.cli.at_store.cursor import asked
from redrive.cli.clerk import Proposed
from redrive.core.errors import BrokerError, ConfigError
from redrive.core.ports import Broker
from redrive.core.redrive import Redrive
from redrive.core.stored import Page
from redrive.triage import redrives
from redrive.triage.desk import Desk
from redrive.triage.drive import Told
from redrive.triage.redriver import Redriver
from redrive.triage.redrives import Shown, Terms
from redrive.triage.selection import Wanted, select
from redrive.wiring import collector
from redrive.worker.collector import is_collected

LOOK = 2.0  # seconds between two looks for a collector


class RedrivesHere:
    """`clerk.Redrives` at a desk. Without a broker they are only looked at, paused and cancelled."""

    interrupted = "interrupted; it goes on with: redrive redrives resume {redrive_id}"

    def __init__(self, desk: Desk, broker: Broker | None) -> None:
        self._desk = desk
        self._broker = broker

    async def propose(self, wanted: Wanted, terms: Terms) -> Proposed:
        brokers = {self._sender.name: self._sender}
        selection = await select(self._desk, wanted)
        plan = await redrives.plan(selection, terms, brokers=brokers)

        async def begin() -> str:
            return (await redrives.create(self._desk, plan)).redrive_id

        return Proposed(plan.preview, plan.sizes, plan.targets, plan.remarks, begin)

    async def carry_out(self, redrive_id: str, *, tell: Callable[[Told], None]) -> None:
        redrive = await self._desk.store.redrive(redrive_id)
        brokers = {self._sender.name: self._sender}
        redriver = Redriver(self._desk.store, brokers, clock=self._desk.clock, tell=tell, cipher=self._desk.cipher)
        async with _collecting(self._desk, self._sender, redrive):
            await redriver.run(redrive_id)

    async def find(self, *, limit: int, after: str | None = None) -> Page[Redrive]:
        return await asked(redrives.find(self._desk, limit=limit, after=after))

    async def show(self, redrive_id: str) -> Shown:
        return await redrives.show(self._desk, redrive_id)

    async def pause(self, redrive_id: str, *, why: str) -> Redrive:
        return await redrives.pause(self._desk, redrive_id, why=why)

    async def resume(self, redrive_id: str) -> Redrive:
        return await redrives.resume(self._desk, redrive_id)

    async def cancel(self, redrive_id: str, *, why: str) -> Redrive:
        return await redrives.cancel(self._desk, redrive_id, why=why)

    @property
    def _sender(self) -> Broker:
        if self._broker is None:
            raise ConfigError("--broker: letters are sent back through a broker, and none is at hand")
        return self._broker


@asynccontextmanager
async def _collecting(desk: Desk, broker: Broker, redrive: Redrive) -> AsyncIterator[None]:
    """Collect from the queues that letters go to, where nobody else does: else no answer would ever come."""
    queues = {target.queue for target in redrive.targets if target.broker == broker.name}
    async with AsyncExitStack() as collectors:
        await _step_in(desk, broker, queues, collectors)
        looking = asyncio.create_task(_keep_stepping_in(desk, broker, queues, collectors))
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)


async def _keep_stepping_in(desk: Desk, broker: Broker, queues: set[str], collectors: AsyncExitStack) -> None:
    """A collector may die while answers are due, or have died just before: it is seen as alive for a while."""
    while queues:
        await asyncio.sleep(LOOK)
        with suppress(BrokerError):  # the redriver tells of a broker that is away
            await _step_in(desk, broker, queues, collectors)


async def _step_in(desk: Desk, broker: Broker, queues: set[str], collectors: AsyncExitStack) -> None:
    alone = [queue for queue in sorted(queues) if not await is_collected(broker, queue)]
    if alone:
        await collectors.enter_async_context(collector(broker, desk.store, queues=alone, clock=desk.clock))
        queues.difference_update(alone)
