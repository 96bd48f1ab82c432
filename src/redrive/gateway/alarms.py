"""What is to happen later: one heap and one sleeper for all requests, so that nobody who waits holds anything."""

import asyncio
import heapq
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from typing import Final

from redrive.core.duration import NOW
from redrive.core.ports import Clock

log = logging.getLogger(__name__)

_FEW: Final = 1000
_RINGING: Final = datetime.min.replace(tzinfo=UTC)


class Alarm:
    """One thing to be done at its time, unless it is called off. `act` is None once it was done or called off."""

    __slots__ = ("act", "due_at")

    def __init__(self, due_at: datetime, act: Callable[[], object]) -> None:
        self.due_at = due_at
        self.act: Callable[[], object] | None = act


class Alarms:
    """Calls functions when their time has come, in its order. Belongs to one event loop.

    A function that raises is logged, and the others are called all the same.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[datetime, int, Alarm]] = []
        self._turns = count()
        self._off = 0
        self._wake_at: datetime | None = None
        self._sleeper: asyncio.Task[None] | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._heap) - self._off

    def now(self) -> datetime:
        """The time by which they ring."""
        return self._clock.now()

    def at(self, due_at: datetime, act: Callable[[], object]) -> Alarm:
        """Call `act` at `due_at`, or as soon as may be if that has passed; never before this returns."""
        alarm = Alarm(due_at, act)
        heapq.heappush(self._heap, (due_at, next(self._turns), alarm))
        if self._wake_at is None or due_at < self._wake_at:
            self._sleep_anew()
        return alarm

    def call_off(self, alarm: Alarm | None) -> None:
        """Never mind. Idempotent; also for one that has rung."""
        if alarm is None or alarm.act is None:
            return
        alarm.act = None
        self._off += 1
        if self._off > _FEW and self._off * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].act is not None]
            heapq.heapify(self._heap)
            self._off = 0

    async def aclose(self) -> None:
        """Ring no more. Idempotent."""
        self._closed = True
        self._heap.clear()
        self._off = 0
        sleeper, self._sleeper = self._sleeper, None
        if sleeper is not None:
            sleeper.cancel()
            await asyncio.wait([sleeper])

    def _sleep_anew(self) -> None:
        if self._closed:
            return
        if self._sleeper is not None:
            self._sleeper.cancel()
        self._wake_at = self._heap[0][0]
        self._sleeper = asyncio.get_running_loop().create_task(self._sleep())
        self._sleeper.add_done_callback(self._woken)

    def _woken(self, sleeper: asyncio.Task[None]) -> None:
        """Begin anew, if the sleeper was ended by anybody but us."""
        if sleeper is self._sleeper and self._heap:
            self._sleep_anew()

    async def _sleep(self) -> None:
        while self._heap:
            self._wake_at = self._heap[0][0]
            await self._clock.sleep(max(NOW, self._wake_at - self._clock.now()))
            self._wake_at = _RINGING  # what is set while they ring is seen by the next turn of this loop
            self._ring()
        self._wake_at = self._sleeper = None

    def _ring(self) -> None:
        now = self._clock.now()
        while self._heap and self._heap[0][0] <= now:
            alarm = heapq.heappop(self._heap)[2]
            act, alarm.act = alarm.act, None
            if act is None:
                self._off -= 1
                continue
            try:
                act()
            except Exception:  # an alarm that fails must not silence the others
                log.exception("an alarm of the gateway failed")
