"""The gateway's own clock: wall time that never jumps."""

import asyncio
import time
from datetime import UTC, datetime, timedelta


class SteadyClock:
    """A `Clock` that starts at the wall time and goes on by the monotonic one.

    Somebody who sets the time of the machine makes no request late, and no limit void.
    """

    def __init__(self) -> None:
        self._start = datetime.now(UTC)
        self._at = time.monotonic()

    def now(self) -> datetime:
        return self._start + timedelta(0, time.monotonic() - self._at)

    async def sleep(self, delay: timedelta) -> None:
        await asyncio.sleep(delay.total_seconds())
