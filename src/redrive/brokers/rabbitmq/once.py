"""What is done once only: a letter sent back, a letter written by hand. Remembered for a week.

The record is written after the deed. A process that dies between the two may do it again: then the message comes twice,
with one id and one key.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from redrive.brokers.rabbitmq.link import Link
from redrive.brokers.rabbitmq.names import once_of
from redrive.brokers.rabbitmq.stream import Follower, Record, Stream

_KEPT: Final[Mapping[str, Any]] = {"x-queue-type": "stream", "x-max-age": "7D"}


class Once:
    """The memory of one queue. `alone` lets one task of this process decide at a time."""

    def __init__(self, link: Link, queue: str) -> None:
        self._follower = Follower(Stream(link, once_of(queue), arguments=_KEPT), link, self._hear)
        self._done: set[str] = set()
        self.alone = asyncio.Lock()

    async def open(self) -> None:
        """Read what is remembered, up to now."""
        await self._follower.tell({})

    def has(self, key: str) -> bool:
        """Whether it was done."""
        return key in self._done

    async def remember(self, keys: Iterable[str]) -> None:
        """Write down that it is done."""
        await self._follower.tell({"keys": list(keys)})

    def _hear(self, record: Record) -> None:
        self._done.update(record["keys"])
