"""Lanes: a fixed number of long-lived coroutines that take deliveries from one buffer.

No task, no timer and no round trip per message. A lane runs handlers one after another for as long as none of them
has to wait; the moment one waits, it wakes the next lane. An idle consumer of fast handlers keeps one lane busy.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from redrive.core.delivery import Delivery
from redrive.core.row import InRows, Row
from redrive.worker.current import works_in
from redrive.worker.outcomes import Outcomes, Release
from redrive.worker.runner import BatchRunner, Runner
from redrive.worker.settle import Settler

if TYPE_CHECKING:
    from redrive.worker.run import Run

TURN = 0.005  # seconds that handlers may run without a pause before outcomes go out and other tasks get a turn


STUBBORN = 5.0  # seconds that a handler has to end when its lane is closed

log = logging.getLogger(__name__)


class Cut(Enum):
    """Why a running handler was cancelled."""

    TIME = "over its time limit"
    LOST = "its lease passed to somebody else"


class Lane:
    """One handler at a time."""

    __slots__ = ("began", "cut", "deliveries", "lost", "run", "task", "waiting")

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.deliveries: tuple[Delivery, ...] = ()
        self.run: Run | None = None
        self.lost: set[int] = set()  # by id(): which of its deliveries have passed to somebody else
        self.began = 0.0
        self.waiting = False
        self.cut: Cut | None = None

    @property
    def in_hand(self) -> Sequence[Delivery]:
        """What runs here, or would in this run."""
        run = self.run
        return self.deliveries if run is None else [*self.deliveries, *run.deliveries]

    def cancel(self, why: Cut) -> bool:
        """Cancel what runs here; the lane itself goes on. False if there is nothing, or somebody else was quicker."""
        if self.cut is not None or not self.waiting or self.task is None:
            return False
        self.cut = why
        return self.task.cancel()


class Lanes:
    """The lanes of one consumer and the buffer they take from. Belongs to one event loop."""

    def __init__(
        self,
        runner: Runner | BatchRunner,
        *,
        outcomes: Outcomes,
        settler: Settler,
        concurrency: int,
        batch_size: int | None = None,
        hungry: Callable[[], None],
    ) -> None:
        self._runner = runner
        self._outcomes = outcomes
        self._settler = settler
        self._batch_size = batch_size
        self._hungry = hungry
        self._by_row = None if isinstance(runner, BatchRunner) else runner.by_row
        self._buffer: deque[Delivery] = deque()
        self._rows: deque[Row] = deque()
        self._rows_next = True  # by turns with the buffer
        self._low = 0
        self._resting: list[asyncio.Future[None]] = []
        self._lanes = [Lane() for _ in range(concurrency)]
        self._halves: deque[tuple[Delivery, ...]] = deque()  # what is left of batches that were cut short
        self._closing = False
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._fed = 0

    @property
    def started(self) -> int:
        """How many deliveries have left the buffer so far."""
        return self._fed - self.buffered

    @property
    def buffered(self) -> int:
        """How many deliveries wait for a lane."""
        return len(self._buffer) + sum([row.size for row in self._rows])

    @property
    def free(self) -> int:
        """How many lanes rest."""
        return len(self._resting)

    def open(self) -> None:
        """Start the lanes."""
        runner = self._runner
        for lane in self._lanes:
            work = (
                partial(self._work_in_batches, lane, runner)
                if isinstance(runner, BatchRunner)
                else partial(self._work, lane, runner)
            )
            lane.task = asyncio.create_task(self._keep(lane, work))
            works_in(lane.task, lane)

    async def close(self) -> None:
        """End the lanes, cancelling what still runs. A handler that will not be cancelled is left behind."""
        self._closing = True
        tasks = [lane.task for lane in self._lanes if lane.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STUBBORN)

    def feed(self, deliveries: Sequence[Delivery]) -> None:
        """Put deliveries into the buffer."""
        if isinstance(deliveries, InRows) and self._by_row is not None:
            self._rows.extend(deliveries.rows)
            self._buffer.extend(deliveries.others)
        else:
            self._buffer.extend(deliveries)
        self._fed += len(deliveries)
        self._low = self.buffered // 2
        if deliveries:
            self._quiet.clear()
            self._wake()

    def take_back(self) -> list[Delivery]:
        """Empty the buffer of what has not started."""
        taken = self._not_started()
        self._fed -= self.buffered
        self._buffer.clear()
        self._rows.clear()
        self._halves.clear()
        if len(self._resting) == len(self._lanes):
            self._quiet.set()
        return taken

    def in_hand(self) -> list[Delivery]:
        """Everything buffered or running. May be called from another thread."""
        running = [delivery for lane in self._lanes for delivery in lane.in_hand]
        return [*running, *self._not_started()]

    def drop(self, lost: set[int]) -> list[Delivery]:
        """Forget deliveries that are lost (by `id()`), and cancel their handlers; return those that were still here.

        The rest of a batch runs again. What cannot be cancelled goes on, and settling it will tell.
        """
        dropped = [delivery for delivery in self._not_started() if id(delivery) in lost]
        if dropped:
            self._buffer.extend(delivery for row in self._rows for delivery in row.deliveries())
            self._rows.clear()
            kept = _without(lost, self._buffer)
            self._fed -= len(self._buffer) - len(kept)
            self._buffer.clear()
            self._buffer.extend(kept)
            self._halves = deque(half for half in (_without(lost, half) for half in self._halves) if half)
        for lane in self._lanes if self._runner.cancellable else ():
            mine = [found for found in lane.deliveries if id(found) in lost and id(found) not in lane.lost]
            if mine and (lane.cancel(Cut.LOST) or lane.cut is not None):
                lane.lost.update(map(id, mine))
                dropped += mine
        return dropped

    def cut_overdue(self, limit: timedelta) -> None:
        """Cancel handlers that have been running longer than the limit."""
        if not self._runner.cancellable:
            return
        latest = time.monotonic() - limit.total_seconds()
        for lane in self._lanes:
            if lane.waiting and lane.began < latest:
                lane.cancel(Cut.TIME)

    async def quiet(self) -> None:
        """Return when nothing is buffered and nothing runs."""
        await self._quiet.wait()

    def _not_started(self) -> list[Delivery]:
        halves = [delivery for half in list(self._halves) for delivery in half]
        return [*self._buffer, *halves, *(delivery for row in [*self._rows] for delivery in row.deliveries())]

    def _wake(self) -> None:
        while self._resting and (self._buffer or self._rows or self._halves):
            pause = self._resting.pop()
            if not pause.done():  # else it was cancelled, and its lane wakes by itself
                pause.set_result(None)
                return

    def _ask_if_low(self) -> None:
        """Ask for more once half of what was fetched is gone. Only before a pause: nobody could answer earlier."""
        if self.buffered <= self._low:
            self._hungry()

    async def _rest(self) -> None:
        self._settler.kick()
        pause: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._resting.append(pause)
        if len(self._resting) == len(self._lanes):
            self._quiet.set()
        self._hungry()
        try:
            await pause
        except asyncio.CancelledError:
            if pause in self._resting:
                self._resting.remove(pause)
            raise

    async def _keep(self, lane: Lane, work: Callable[[], Awaitable[None]]) -> None:
        """A lane goes on, whatever happens in it, until the lanes are closed."""
        while True:
            try:
                await work()
            except asyncio.CancelledError:
                if self._closing:
                    raise
            except Exception:
                log.exception("a lane stumbled; what it had in hand is handed back")
                for delivery in lane.deliveries:
                    self._settler.add(Release(delivery))
            lane.deliveries = ()
            lane.run = None
            lane.lost.clear()
            _forget_cancels(lane)

    async def _work(self, lane: Lane, runner: Runner) -> None:
        buffer, rows = self._buffer, self._rows
        while True:
            if not buffer and not rows:
                lane.deliveries = ()
                await self._rest()
            began, before = time.monotonic(), self.started
            if self._by_row is not None and rows and (self._rows_next or not buffer):
                waiting = self._by_row.run(rows, lane, began + TURN)
            else:
                waiting = runner.run(buffer, lane, began + TURN)
            self._rows_next = not self._rows_next
            started = self.started - before
            if started > 1 or waiting is None:
                began = self._share(began, started, waits=waiting is not None)
            if waiting is not None:
                ended = await self._wait(lane, waiting, began)
                if ended is not None:
                    self._settler.add(ended)
            elif buffer or rows:
                self._settler.kick()
                self._ask_if_low()
                await asyncio.sleep(0)

    async def _work_in_batches(self, lane: Lane, runner: BatchRunner) -> None:
        size = self._batch_size or 1
        while True:
            if self._halves:
                lane.deliveries = self._halves.popleft()
            elif self._buffer:
                lane.deliveries = tuple(self._buffer.popleft() for _ in range(min(size, len(self._buffer))))
                self._hungry()
            else:
                await self._rest()
                continue
            for ended in await self._wait(lane, runner.start(lane.deliveries), time.monotonic()) or ():
                self._settler.add(ended)

    def _share(self, began: float, started: int, *, waits: bool) -> float:
        """Share the time of a turn among the handlers that ran in it; return when the last one began, if it waits."""
        now = time.monotonic()
        share = (now - began) / max(started, 1)
        ended = started - waits
        if ended > 0:
            self._settler.ran((share, ended))
        return now - share

    async def _wait(self, lane: Lane, work: Awaitable[Any], began: float) -> Any:
        """Await a handler that has to wait, letting the next lane go on meanwhile."""
        lane.began = began
        lane.waiting = True
        self._settler.kick()
        self._ask_if_low()
        self._wake()
        try:
            ended = await work
        except asyncio.CancelledError:
            if self._closing:
                raise
            ended = self._cut_short(lane)
        finally:
            self._settler.ran((time.monotonic() - began, 1))
            lane.waiting = False
            lane.cut = None
            lane.deliveries = ()
            lane.lost.clear()
            if not self._closing:
                _forget_cancels(lane)
        return ended

    def _cut_short(self, lane: Lane) -> Any:
        """What becomes of a handler that was cancelled: by us for a reason, or else from inside.

        What is left of a batch when some of it are lost runs again. Of one that took too long nobody knows which is to
        blame: it is halved and run again, and only a batch of one has failed.
        """
        left = _without(lane.lost, lane.deliveries)
        if lane.cut is Cut.LOST:
            self._halves.extend([left] if left else ())
            return None
        if len(lane.deliveries) > 1:
            middle = len(left) // 2
            self._halves.extend(half for half in (left[:middle], left[middle:]) if half)
            return None
        if not left:
            return None
        took = time.monotonic() - lane.began
        error: Exception = RuntimeError("the handler was cancelled from inside")
        if lane.cut is Cut.TIME:
            error = TimeoutError(f"the attempt was cancelled after {took:.3g} s: {Cut.TIME.value}")
        ended = self._outcomes.failure(lane.deliveries[0], error, took=took)
        return ended if self._batch_size is None else [ended]


def _without(lost: set[int], deliveries: Iterable[Delivery]) -> tuple[Delivery, ...]:
    return tuple(delivery for delivery in deliveries if id(delivery) not in lost)


def _forget_cancels(lane: Lane) -> None:
    """Take back cancellations that were meant for a handler, so that the lane goes on."""
    while lane.task is not None and lane.task.cancelling():
        lane.task.uncancel()
