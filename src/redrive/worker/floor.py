"""The floor: who may run in this process: everybody, or one suspect alone."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Protocol


class Dancer(Protocol):
    """A worker that can be asked to leave the floor."""

    async def cleared(self) -> None:
        """Return when it has stopped fetching, nothing of it runs, and everything is settled."""
        ...


class Floor:
    """Shared by all workers of a process."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._one = asyncio.Lock()
        self.members: Sequence[Dancer] = ()

    @property
    def taken(self) -> bool:
        """True while a suspect has the floor, or waits for it."""
        return not self._open.is_set()

    async def wait(self) -> None:
        """Return when everybody may run."""
        await self._open.wait()

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Have the floor to oneself."""
        async with self._one:
            self._open.clear()
            try:
                for member in self.members:
                    await member.cleared()
                yield
            finally:
                self._open.set()
