"""The real clock: wall time, and sleep on the running event loop."""

import asyncio
from datetime import UTC, datetime, timedelta


class SystemClock:
    """The `Clock` of every program that is not a test."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, delay: timedelta) -> None:
        await asyncio.sleep(delay.total_seconds())
