"""A way back from beginning to end: everything dies, is collected and sent back, and everybody is killed meanwhile.

publish ──▶ worker, broken ──▶ DLQ ──▶ collector ──▶ store ──▶ redriver ──▶ worker, fixed ──▶ resolved
                                        killed                  killed       killed
"""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from redrive.cli.output import Exit
from redrive.clock import SystemClock
from redrive.core.errors import BrokerUnavailable
from redrive.core.message import Message
from redrive.core.ports import Broker
from redrive.core.ports.store import Store
from redrive.core.query import Query
from redrive.core.redrive import ItemStatus, Redrive, RedriveState
from redrive.core.stored import StoredLetter
from redrive.triage import redrives
from redrive.triage.desk import Desk
from redrive.triage.selection import Wanted, select
from redrive.wiring import connect, open_store
from tests.crash.adapter import Adapter
from tests.crash.checker import Verdict
from tests.crash.journal import Reader, Word
from tests.crash.plan import RETURNS
from tests.crash.scenario import GROUP, Scenario, Site
from tests.crash.troupe import Process, Troupe
from tests.crash.way_back_checker import Return, check_return
from tests.crash.way_back_redriver import POINTS

CANARY = (1, 5, 25)
SENDING = 3.0  # seconds that a redrive takes without anybody being killed: there is a middle to be killed in
MOMENT = 0.15  # seconds; while it is sending, a redrive claims every tenth of one
INSTANT = 0.02  # seconds; collecting is quicker than that
LOOK = 0.005
LIMIT = 120.0  # seconds for each phase; what is unfinished then is counted


@dataclass(frozen=True, slots=True)
class Result:
    """What a way back came to."""

    scenario: Scenario
    adapter: Adapter
    verdict: Verdict
    seconds: float
    stderr: str


async def run(scenario: Scenario, *, adapter: Adapter, folder: Path, points: Sequence[str] = POINTS) -> Result:
    """Run a scenario on an adapter, in an empty folder. Raises nothing about what it finds: that is the verdict.

    The scenario's kills are for each: as many collectors, redrivers and workers are killed.
    """
    began = time.monotonic()
    replace(scenario, url=adapter.url, module=adapter.module).save(folder)
    site = Site.at(folder)
    broker = connect(adapter.look_url or adapter.url)
    store = open_store(f"sqlite:///{folder / 'letters.db'}")
    way_back = WayBack(site, adapter, broker=broker, store=store)
    try:
        await way_back.die()
        await way_back.collect()
        redrive = await way_back.begin()
        unended = await way_back.carry_out(redrive, points=points)
        found = await way_back.look(redrive, unended=unended, strikes=3 * scenario.kills + len(points))
    finally:
        way_back.close()
        await store.aclose()
        await broker.aclose()
    seconds = time.monotonic() - began
    return Result(site.scenario, adapter, check_return(found), seconds, (folder / "stderr").read_text())


class WayBack:
    """The phases of a way back."""

    def __init__(self, site: Site, adapter: Adapter, *, broker: Broker, store: Store) -> None:
        self._site = site
        self._adapter = adapter
        self._broker = broker
        self._store = store
        self._clock = SystemClock()
        self._names = [f"s{site.scenario.seed}-{number}" for number in range(site.scenario.messages)]
        self._reader = Reader(site.folder / "journal")
        self._troupe = Troupe(site, self._reader)
        self._random = Random(site.scenario.seed)

    async def die(self) -> None:
        """Publish everything to a worker that refuses it."""
        await self._broker.publish(RETURNS, [Message("", RETURNS, name.encode()) for name in self._names])
        worker = self._troupe.start("way_back_app")
        await _until(lambda: _reached(self._broker.dead_letters(RETURNS).length, len(self._names)))
        await self._dismiss(worker)

    async def collect(self) -> None:
        """Kill one collector after the other at its work, then let the last one end."""
        for due in self._dues(self._site.scenario.kills):
            await self._kill_at(self._collected, due, kind="SIGKILL of the collector", within=INSTANT)
        await self._end_of_redriver()

    async def begin(self) -> Redrive:
        """Begin the redrive of all letters, and let a fixed worker wait for them."""
        desk = Desk(self._store, self._clock, "harness")
        selection = await select(desk, Wanted(query=Query(queue=RETURNS)))
        terms = redrives.Terms(canary=CANARY, rate=len(self._names) / SENDING)
        plan = await redrives.plan(
            selection,
            terms,
            brokers={self._broker.name: self._broker},
            redrive_id=f"{self._random.getrandbits(48):012x}",
        )
        self._troupe.flip()
        return await redrives.create(desk, plan)

    async def carry_out(self, redrive: Redrive, *, points: Sequence[str]) -> Sequence[str]:
        """Kill one redriver after the other, then let the last one end; return what did not end as it should."""
        working = asyncio.create_task(self._kill_workers())
        for due in self._dues(self._site.scenario.kills):
            await self._kill_at(lambda: self._claimed(redrive), due, kind="SIGKILL of the redriver")
        await _until(self._is_drained)
        await self._dismiss(await working)  # whoever follows must send again, and not be spared it by an answer
        for point in points:
            self._site.points.arm(point)
            await self._end_of_redriver()
        self._site.points.disarm()
        last = asyncio.create_task(self._end_of_redriver())
        await _until(lambda: self._is_recorded(redrive))
        worker = self._troupe.start("way_back_app")
        status = await last
        await self._dismiss(worker)
        state = (await self._store.redrive(redrive.redrive_id)).state
        return [
            *([] if status == 0 else [f"the last redriver ended with status {status}"]),
            *([] if worker.returncode == 0 else [f"the worker ended with status {worker.returncode}"]),
            *([] if state is RedriveState.DONE else [f"the redrive is {state}"]),
        ]

    async def _end_of_redriver(self) -> int | None:
        """Let who collects and redrives come to its end; return its status."""
        while True:
            process = self._troupe.start("way_back_redriver")
            await self._ended(process)
            if not self._adapter.comes_back or process.returncode != Exit.UNAVAILABLE:
                return process.returncode

    async def _is_drained(self) -> bool:
        depth = await self._broker.depth(RETURNS, group=GROUP)
        return not depth.waiting + depth.in_flight + depth.scheduled

    async def _is_recorded(self, redrive: Redrive) -> bool:
        """Whether everything that was claimed is on its way, and known to be."""
        progress = await self._store.progress(redrive.redrive_id)
        return bool(progress.count(ItemStatus.SENT)) and not progress.count(ItemStatus.CLAIMED)

    def _dues(self, kills: int) -> Sequence[int]:
        """When to kill: at so many letters on their way, the canaries included; room is left for named points."""
        return sorted(self._random.randrange(int(len(self._names) * 0.8)) for _ in range(kills))

    async def _kill_at(
        self, count: Callable[[], Awaitable[int]], due: int, *, kind: str, within: float = MOMENT
    ) -> None:
        """Kill who collects and redrives when the count is so far, but not before it has done some of it itself."""
        due = max(due, await count())
        process = self._troupe.start("way_back_redriver")

        async def is_due() -> bool:
            return await count() > due or process.poll() is not None

        await _until(is_due)
        await asyncio.sleep(self._random.random() * within)  # it may be anywhere between two steps
        await self._kill(process, kind=kind)

    async def _kill_workers(self) -> Process:
        """Kill one worker after the other when redriven messages have run; return the one that is left to work."""
        for due in self._dues(self._site.scenario.kills):
            worker = self._troupe.start("way_back_app")
            await _until(lambda due=due: _reached(self._ran, due))  # type: ignore[misc]
            await self._kill(worker, kind="SIGKILL of the worker")
        return self._troupe.start("way_back_app")

    async def _kill(self, process: Process, *, kind: str) -> None:
        if process.poll() is None:
            self._troupe.strike(process.pid, signal.SIGKILL, kind=kind)
        await self._ended(process)

    async def _collected(self) -> int:
        return sum((await self._store.stats()).by_state.values())

    async def _ran(self) -> int:
        return sum(entry.generation > 0 for entry in self._reader.of(Word.START))

    async def _claimed(self, redrive: Redrive) -> int:
        return redrive.total - (await self._store.progress(redrive.redrive_id)).count(ItemStatus.PLANNED)

    async def look(self, redrive: Redrive, *, unended: Sequence[str], strikes: int) -> Return:
        """What there is at the end."""
        return Return(
            published=self._names,
            journal=self._reader.entries(),
            letters=await self._letters(),
            progress=await self._store.progress(redrive.redrive_id),
            claims=await self._claims(),
            by_state=(await self._store.stats()).by_state,
            left=[*await self._left(), *self._adapter.leaks()],
            unended=unended,
            strikes=strikes,
        )

    async def _letters(self) -> list[StoredLetter]:
        rows = await self._store.select(Query(), limit=2 * len(self._names))
        return [await self._store.get(row.letter_id) for row in rows]

    async def _claims(self) -> Counter[str]:
        claims: Counter[str] = Counter()
        after: str | None = None
        while True:
            page = await self._store.records(limit=1000, after=after)
            claims.update(one.letter_id for one in page.rows if one.verb == "letters.redrive" and one.letter_id)
            after = page.after
            if after is None:
                return claims

    async def _left(self) -> list[str]:
        left = [] if await self._store.verify() is None else ["a broken audit"]
        for queue, group in await self._broker.queues():
            depth = await self._broker.depth(queue, group=group)
            number = depth.waiting + depth.in_flight + depth.scheduled + depth.held
            left += [f"{number} in {queue} for {group}"] if number else []
        return left

    async def _dismiss(self, process: Process) -> None:
        process.terminate()
        await self._ended(process)

    async def _ended(self, process: Process) -> None:
        async def is_over() -> bool:
            return process.poll() is not None

        await _until(is_over)

    def close(self) -> None:
        """End every process of the run."""
        self._troupe.end()
        self._site.journal.close()


async def _until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Return when it is so, or when the time is over: what is unfinished then, the checker will count."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        with suppress(BrokerUnavailable):  # one that was struck says nothing for a while
            if await is_so():
                return
        await asyncio.sleep(LOOK)


async def _reached(count: Callable[[], Awaitable[int]], number: int) -> bool:
    return await count() >= number
