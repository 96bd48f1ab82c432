"""What belongs to one event loop: opened there when it is first needed, and closed there."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from redrive.core.errors import StoreError

T = TypeVar("T")


class Errands:
    """Work on an event loop that goes on even if its caller is cancelled: half a call would cost the connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._at_work: set[asyncio.Task[Any]] = set()

    async def carry_out(self, work: Coroutine[Any, Any, T]) -> T:
        """Start it, and wait for it."""
        task = self.loop.create_task(work)
        self._at_work.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    async def finish(self) -> None:
        """Wait until nothing is at work. Raises nothing of what went wrong there."""
        await asyncio.gather(*self._at_work, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._at_work.discard(task)
        if not task.cancelled():
            task.exception()  # looked at: if its caller has gone, nobody else does, and asyncio would log it


class Home(Protocol):
    """A client of a server, and the loop that it lives on."""

    loop: asyncio.AbstractEventLoop

    async def aclose(self) -> None:
        """Finish what runs, and close."""


H = TypeVar("H", bound=Home)


class Lodging(Generic[H]):
    """A home on the event loop that asks for it first, until that loop is closed. `shown` names it in errors."""

    def __init__(self, open_: Callable[[asyncio.AbstractEventLoop], H], *, shown: str) -> None:
        self._open = open_
        self._shown = shown
        self._home: H | None = None
        self._closed = False

    def at_home(self) -> H:
        """The home, opened if need be. Raises `StoreError` on another loop, and once it is closed."""
        if self._closed:
            raise StoreError(f"{self._shown}: the store has been closed")
        loop = asyncio.get_running_loop()
        if self._home is None or self._home.loop.is_closed():
            self._home = self._open(loop)
        if self._home.loop is not loop:
            raise StoreError(f"{self._shown}: the store is in use on another event loop; open one for each")
        return self._home

    async def aclose(self) -> None:
        """Close it for good. Idempotent."""
        self._closed = True
        home, self._home = self._home, None
        if home is not None and home.loop is asyncio.get_running_loop():
            await home.aclose()
