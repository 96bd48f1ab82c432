"""One run from beginning to end: send and strike, drain, look, redrive everything, drain, look again."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from redrive.core.errors import BrokerUnavailable
from redrive.core.ports import Broker
from redrive.wiring import connect
from tests.crash.adapter import Adapter
from tests.crash.checker import After, Evidence, Verdict, check
from tests.crash.inspection import count_in_hand, count_left, find_letters, prepare, read_reports
from tests.crash.journal import Reader, Word
from tests.crash.nemesis import Nemesis
from tests.crash.points import EVERY_ADAPTER, REDRIVER_POINTS
from tests.crash.producer import deal_for
from tests.crash.scenario import Scenario, Site
from tests.crash.troupe import Process, Troupe

LOOK = 0.05
LIMIT = 300.0  # seconds for each phase of a run; what is unfinished then is stuck
SILENT = 15  # leases without a start, after which it is stuck as well


@dataclass(frozen=True, slots=True)
class Result:
    """What a run came to. `stderr` is what its processes complained about."""

    scenario: Scenario
    adapter: Adapter
    verdict: Verdict
    seconds: float
    stderr: str


async def run(
    scenario: Scenario, *, adapter: Adapter, folder: Path, limit: float = LIMIT, redrive: bool = True
) -> Result:
    """Run a scenario on an adapter, in an empty folder. Raises nothing about what it finds: that is the verdict."""
    began = time.monotonic()
    replace(scenario, url=adapter.url, module=adapter.module).save(folder)
    site = Site.at(folder)
    broker = connect(adapter.look_url or adapter.url)
    campaign = Campaign(site, adapter, broker=broker, limit=limit)
    try:
        evidence = await campaign.fight()
        if redrive and not evidence.left:
            evidence = await campaign.make_good(evidence)
    finally:
        campaign.close()
        await broker.aclose()
    seconds = time.monotonic() - began
    return Result(site.scenario, adapter, check(evidence), seconds, (folder / "stderr").read_text())


def everywhere(scenario: Scenario, adapter: Adapter) -> Scenario:
    """The scenario with a kill at every named point, and zombies before every kind of outcome."""
    stops = ("before an ack", "before a retry", "before a give-up")
    return replace(scenario, points=(*EVERY_ADAPTER, *adapter.points), stops=stops)


class Campaign:
    """The phases of a run."""

    def __init__(self, site: Site, adapter: Adapter, *, broker: Broker, limit: float) -> None:
        self._site = site
        self._adapter = adapter
        self._broker = broker
        self._limit = limit
        self._reader = Reader(site.folder / "journal")
        self._troupe = Troupe(site, self._reader)

    async def fight(self) -> Evidence:
        """Send and strike, then let the workers finish in peace."""
        await prepare(self._broker)
        nemesis = Nemesis(self._site, self._troupe, self._reader, adapter=self._adapter)
        await nemesis.rage(self._limit)
        for fault, times in self._adapter.calm().items():
            for _ in range(times):
                self._site.journal.note(Word.FAULT, pid=0, note=fault)
        await self._drain()
        self._troupe.end()
        scenario = self._site.scenario
        return Evidence(
            plans={plan.id: plan for plan in deal_for(self._site)},
            journal=self._reader.entries(),
            letters=await find_letters(self._broker),
            left=await count_left(self._broker),
            abandoned=await count_in_hand(self._broker),
            crash_limit=scenario.crash_limit,
            max_attempts=scenario.retries + 1,
            retry_delay=scenario.retry_delay,
            points=[point for point in scenario.points if point not in REDRIVER_POINTS],
            by_key=self._adapter.by_key,
        )

    async def make_good(self, evidence: Evidence) -> Evidence:
        """Send every letter back to workers for whom nothing fails."""
        self._troupe.flip()
        supervisor = self._troupe.start("supervise")
        points = [point for point in self._site.scenario.points if point in REDRIVER_POINTS]
        for point in (*points, None):
            if point is not None:
                self._site.points.arm(point)
            await self._ended(self._troupe.start("redriver"))
        self._site.points.disarm()
        await self._drain()
        supervisor.terminate()
        await self._ended(supervisor)
        after = After(
            letters=await find_letters(self._broker),
            left=await count_left(self._broker),
            reports=await read_reports(self._broker),
            leaks=[*_leaks_of(supervisor), *self._adapter.leaks()],
        )
        return replace(evidence, journal=self._reader.entries(), points=self._site.scenario.points, after=after)

    def close(self) -> None:
        """End every process of the run."""
        self._troupe.end()
        self._site.journal.close()

    async def _drain(self) -> None:
        """Wait until nothing is left, or nothing has started for many leases, or the time is over."""
        began = started_at = seen_at = time.monotonic()
        started = 0
        while True:
            left, now = await self._is_any_left(), time.monotonic()
            if left:
                seen_at = now
            elif now - seen_at >= self._adapter.quiet:
                return
            if started < len(self._reader.of(Word.START)):
                started, started_at = len(self._reader.of(Word.START)), now
            if now - began > self._limit or now - started_at > SILENT * self._site.scenario.lease:
                return
            await asyncio.sleep(LOOK)

    async def _is_any_left(self) -> bool:
        """Whether something is left, or nobody can say: a server that has just been started answers not everything."""
        try:
            return bool(await count_left(self._broker))
        except BrokerUnavailable:
            return True

    async def _ended(self, process: Process) -> None:
        end = time.monotonic() + self._limit
        while process.poll() is None and time.monotonic() < end:  # noqa: ASYNC110 - another process's event
            await asyncio.sleep(LOOK)


def _leaks_of(supervisor: Process) -> Sequence[str]:
    return () if supervisor.returncode == 0 else [f"a supervisor that ended with status {supervisor.returncode}"]
