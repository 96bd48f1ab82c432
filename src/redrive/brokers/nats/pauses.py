"""Pauses: a key in the bucket, read at most once a second by whoever fetches."""

from datetime import datetime, timedelta
from typing import Final

from redrive.brokers.nats.book import Book, Write
from redrive.brokers.nats.groups import Group
from redrive.core.ports import Clock

_FRESH: Final = timedelta(seconds=1)


class Pauses:
    """Which groups are paused, and why, as far as this process knows."""

    def __init__(self, book: Book, clock: Clock) -> None:
        self._book = book
        self._clock = clock
        self._known: dict[str, tuple[datetime, str | None]] = {}

    async def why(self, group: Group, *, fresh: bool = False) -> str | None:
        """Why a group is paused; None if it is not. Not older than a second."""
        key, now = _key(group), self._clock.now()
        known = self._known.get(key)
        if fresh or known is None or now - known[0] >= _FRESH:
            row = await self._book.get(key)
            known = self._known[key] = (now, None if row is None else row.value.decode("utf-8", "surrogatepass"))
        return known[1]

    async def set(self, group: Group, why: str | None) -> None:
        """Pause a group, or let it go on."""
        key = _key(group)
        if why is not None:
            await self._book.write([Write(key, why.encode("utf-8", "surrogatepass"))])
        elif (row := await self._book.get(key)) is not None:
            await self._book.drop({key: row.revision})
        self._known[key] = (self._clock.now(), why)


def _key(group: Group) -> str:
    return f"pause.{group.wells[0].key}"
