"""A clock that runs as time does, and can be pushed on."""

import asyncio
from datetime import UTC, datetime, timedelta

from redrive.core.duration import NOW


class HurriedClock:
    """A `Clock` for servers whose own time does not matter. Sleepers wake in time, or when the clock is pushed."""

    def __init__(self) -> None:
        self._ahead = timedelta()
        self._pushed: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    @property
    def ahead(self) -> timedelta:
        """How far it was pushed."""
        return self._ahead

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def advance(self, delta: timedelta) -> None:
        """Let time pass at once."""
        self._ahead += delta
        pushed, self._pushed = self._pushed, []
        for loop, event in pushed:
            loop.call_soon_threadsafe(event.set)

    async def sleep(self, delay: timedelta) -> None:
        ends_at = self.now() + delay
        while (left := ends_at - self.now()) > NOW:
            pushed = (asyncio.get_running_loop(), asyncio.Event())
            self._pushed.append(pushed)
            try:
                await asyncio.wait_for(pushed[1].wait(), left.total_seconds())
            except TimeoutError:
                return
            finally:
                if pushed in self._pushed:
                    self._pushed.remove(pushed)
        await asyncio.sleep(0)
