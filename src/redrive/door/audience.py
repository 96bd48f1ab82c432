"""The audience: those who listen to events. Bounded, and told when the service is about to end."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from fastapi import FastAPI

from redrive.core.ports import Clock

SEATS = 64


class Audience:
    """So many seats. A stream would go on for ever: `close` lets each end by itself, and lets nobody in any more."""

    def __init__(self, seats: int = SEATS) -> None:
        self._free = seats
        self._closing = asyncio.Event()

    @property
    def closed(self) -> bool:
        """Whether everybody is to go."""
        return self._closing.is_set()

    @contextmanager
    def seat(self) -> Iterator[bool]:
        """A seat for as long as the block lasts; False if there is none."""
        if self.closed or not self._free:
            yield False
            return
        self._free -= 1
        try:
            yield True
        finally:
            self._free += 1

    def close(self) -> None:
        """Ask everybody to go. Idempotent; to be called before a server waits for its connections to end."""
        self._closing.set()

    async def rest(self, delay: timedelta, *, clock: Clock) -> None:
        """Return after a while, or at once when everybody is to go."""
        waits = [asyncio.ensure_future(clock.sleep(delay)), asyncio.ensure_future(self._closing.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)


def audience_of(app: FastAPI) -> Audience:
    """The audience of an app."""
    found: Audience = app.state.audience
    return found
