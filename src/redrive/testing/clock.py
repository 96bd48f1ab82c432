"""A clock that stands still until a test moves it."""

import asyncio
import heapq
from datetime import UTC, datetime, timedelta
from itertools import count

from redrive.core.duration import NOW, Duration, as_duration

START = datetime(2030, 1, 1, tzinfo=UTC)


class ManualClock:
    """A `Clock` whose time passes only by `advance`.

    Sleepers wake in the order of their times, and all of them see the time to which the clock was moved.

    >>> clock = ManualClock()
    >>> before = clock.now()
    >>> clock.advance("90s")
    >>> clock.now() - before
    datetime.timedelta(seconds=90)
    """

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._sleepers: list[tuple[datetime, int, asyncio.Future[None]]] = []
        self._turns = count()

    def now(self) -> datetime:
        return self._now

    async def sleep(self, delay: timedelta) -> None:
        if delay <= NOW:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + delay, next(self._turns), woken))
        await woken

    def next_wake_at(self) -> datetime | None:
        """When the next sleeper wakes, or None if nobody sleeps."""
        self._forget_cancelled()
        return self._sleepers[0][0] if self._sleepers else None

    def advance(self, delta: Duration) -> None:
        """Let time pass, and wake those whose time has come. They run when the caller next awaits."""
        self._now += as_duration(delta)
        self._forget_cancelled()
        while self._sleepers and self._sleepers[0][0] <= self._now:
            heapq.heappop(self._sleepers)[2].set_result(None)
            self._forget_cancelled()

    def _forget_cancelled(self) -> None:
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
