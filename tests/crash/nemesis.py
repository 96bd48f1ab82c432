"""The nemesis: strikes by a seeded schedule, counted in messages rather than in seconds."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from random import Random

from redrive.worker.supervisor import Role
from tests.crash.adapter import Adapter
from tests.crash.journal import Entry, Reader, Word
from tests.crash.points import REDRIVER_POINTS
from tests.crash.scenario import Site
from tests.crash.troupe import Process, Troupe

LOOK = 0.02
PATIENCE = 10.0  # for a victim to show up
SILENT = 15  # leases without a start, after which nobody will come by a point any more
NOTED = 1.0  # for one that was struck at a point to have noted it

Strike = Callable[[], Awaitable[None]]


class Nemesis:
    """Keeps a producer and a supervisor running, and strikes them and theirs until its schedule is done."""

    def __init__(self, site: Site, troupe: Troupe, reader: Reader, *, adapter: Adapter) -> None:
        self._site = site
        self._troupe = troupe
        self._reader = reader
        self._adapter = adapter
        self._random = Random(site.scenario.seed)
        self._struck: set[int] = set()  # processes that are killed or stand still
        self._under_way: set[asyncio.Task[None]] = set()
        self._last_start = (0, time.monotonic())  # how many there were, and when that was seen first
        self._down = 0  # things that are done to the system just now
        self._supervisor: Process = troupe.start("supervise")
        self._producer: Process = troupe.start("producer")

    async def rage(self, limit: float) -> None:
        """Strike until the schedule is done, every point reached, everything sent; for at most `limit` seconds.

        Raises `RuntimeError` if a program of the harness does not run at all.
        """
        try:
            async with asyncio.timeout(limit):
                for due, strike in self._schedule():
                    await self._until(lambda due=due: len(self._reader.of(Word.START)) >= due or self._all_sent())  # type: ignore[misc]
                    self._under_way.add(asyncio.ensure_future(strike()))
                await self._until(self._is_over)
        except TimeoutError:
            pass  # what was not reached or not sent is for the checker to count
        finally:
            await self._rest()

    async def _rest(self) -> None:
        self._site.points.disarm()
        for task in self._under_way:
            task.cancel()
        ends = await asyncio.gather(*self._under_way, return_exceptions=True)
        for pid in self._troupe.alive(Role.WORKER):
            self._troupe.strike(pid, signal.SIGCONT)
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, TimeoutError):  # a victim may never have shown up
                raise end

    def _schedule(self) -> Sequence[tuple[int, Strike]]:
        """What to do when so many handlers have started, in that order."""
        scenario = self._site.scenario
        rare: list[Strike] = [self._stop_worker, self._kill_supervisor, self._kill_producer]
        rare += [partial(self._do_to_system, name) for name in self._adapter.faults]
        rare = [strike for strike in rare for _ in range(max(1, scenario.kills // 15))] + [self._kill_suspects]
        strikes = rare[: scenario.kills // 2]
        strikes += [self._kill_worker] * (scenario.kills - len(strikes))
        kills = [name for name in scenario.points if name not in REDRIVER_POINTS]
        # Whoever dies at a point comes before whoever stops there: a stop may have to be tried until the end.
        signals = {
            name: iter([*([signal.SIGKILL] * (name in kills)), signal.SIGSTOP]) for name in (*kills, *scenario.stops)
        }
        strikes += [partial(self._arm, name, signals[name]) for name in (*kills, *scenario.stops)]
        self._random.shuffle(strikes)
        dues = sorted(self._random.randrange(int(scenario.messages * 0.8)) for _ in strikes)
        return list(zip(dues, strikes, strict=True))

    async def _kill_worker(self) -> None:
        await self._kill(Role.WORKER, kind="SIGKILL of a worker")

    async def _kill_suspects(self) -> None:
        """Only once in a run: a message whose process dies `crash_limit` times while it runs alone is given up."""
        await self._kill(Role.SUSPECTS, kind="SIGKILL of the suspects' process")

    async def _kill(self, role: Role, *, kind: str) -> None:
        pid = await self._victim(role)
        self._struck.add(pid)
        self._troupe.strike(pid, signal.SIGKILL, kind=kind)

    async def _stop_worker(self) -> None:
        pid = await self._victim(Role.WORKER)
        self._troupe.strike(pid, signal.SIGSTOP, kind="SIGSTOP of a worker beyond its lease")
        await self._let_lose(pid)

    async def _kill_supervisor(self) -> None:
        self._troupe.strike(self._supervisor.pid, signal.SIGKILL, kind="SIGKILL of the supervisor")
        self._supervisor.wait()
        self._supervisor = self._troupe.start("supervise")

    async def _kill_producer(self) -> None:
        self._troupe.strike(self._producer.pid, signal.SIGKILL, kind="SIGKILL of a producer")

    async def _do_to_system(self, name: str) -> None:
        self._site.journal.note(Word.FAULT, pid=0, note=name)
        striking = asyncio.ensure_future(asyncio.to_thread(self._adapter.faults[name]))
        self._down += 1
        try:
            await asyncio.shield(striking)
        except asyncio.CancelledError:
            await striking  # nothing drains on a system that was left down
            raise
        finally:
            self._down -= 1

    async def _arm(self, name: str, signals: Iterator[signal.Signals]) -> None:
        """Arm a point until it is reached; who is stopped there goes on when its message has passed to another."""
        strike = next(signals)
        await self._until(lambda: name not in self._site.points.armed())
        while True:
            known = len(self._reader.of(Word.POINT))
            self._site.points.arm(name, strike=strike)
            await self._until(lambda: name not in self._site.points.armed())
            entry = await self._reached(name, since=known)
            if entry is not None and (strike is signal.SIGKILL or await self._let_lose(entry.pid, entry.id)):
                return

    async def _reached(self, name: str, *, since: int) -> Entry | None:
        """Who was struck at a point; None if it was killed elsewhere before it could note it."""
        for _ in range(round(NOTED / LOOK)):
            points = self._reader.of(Word.POINT)[since:]
            found = next((entry for entry in points if entry.note.endswith(f": {name}")), None)
            if found is not None:
                return found
            await asyncio.sleep(LOOK)
        return None

    async def _let_lose(self, pid: int, name: str = "") -> bool:
        """Let a stopped process go on when somebody else has started a message of its; False if nobody has.

        The named one, or any that it has begun. It may be idle, or it may have been stopped with a lock in its hands
        that nobody gets past.
        """
        retried = {entry.id for entry in self._reader.of(Word.FAIL)}  # these go to others anyway
        begun = {entry.id for entry in self._reader.of(Word.START) if entry.pid == pid} - retried
        its = {name} if name else begun
        known = len(self._reader.of(Word.START))
        self._struck.add(pid)
        try:
            async with asyncio.timeout(self._site.scenario.lease * 4):
                await self._until(lambda: any(entry.id in its for entry in self._reader.of(Word.START)[known:]))
        except TimeoutError:
            return False
        finally:
            self._struck.discard(pid)
            self._troupe.strike(pid, signal.SIGCONT)
        return True

    async def _victim(self, role: Role) -> int:
        async with asyncio.timeout(PATIENCE):
            while True:
                found = [pid for pid in self._troupe.alive(role) if pid not in self._struck]
                if found:
                    return self._random.choice(found)
                await asyncio.sleep(LOOK)

    def _all_sent(self) -> bool:
        """Whether the producer has sent everything; one that was killed is started again. Raises if it cannot run."""
        for process in (self._supervisor, self._producer):
            if (process.poll() or 0) > 0:
                raise RuntimeError(f"{process.args!r} ended by itself:\n{(self._site.folder / 'stderr').read_text()}")
        if self._producer.returncode:
            self._producer = self._troupe.start("producer")
        return self._producer.returncode == 0

    def _is_over(self) -> bool:
        return self._all_sent() and (all(task.done() for task in self._under_way) or self._is_silent())

    def _is_silent(self) -> bool:
        """Whether nothing has started for so long that what is still to be struck will not show up.

        Not while the system is down: a server may take its time to come back.
        """
        now, starts = time.monotonic(), len(self._reader.of(Word.START))
        if starts != self._last_start[0] or self._down:
            self._last_start = starts, now
        return now - self._last_start[1] > SILENT * self._site.scenario.lease

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._all_sent()
            await asyncio.sleep(LOOK)
