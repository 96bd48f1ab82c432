"""Waking event loops from threads."""

import asyncio
import contextlib
from typing import TypeAlias

Listener: TypeAlias = tuple[asyncio.AbstractEventLoop, asyncio.Event]


class Bell:
    """Rung by any thread, heard in any event loop."""

    def __init__(self) -> None:
        self.rings = 0  # whoever looked, and finds another number now, has missed something
        self._listeners: set[Listener] = set()

    def listen(self) -> Listener:
        """An event of the running loop that is set whenever the bell is rung."""
        listener = (asyncio.get_running_loop(), asyncio.Event())
        self._listeners.add(listener)
        return listener

    def unlisten(self, listener: Listener) -> None:
        """Nobody waits for it any more."""
        self._listeners.discard(listener)

    def ring(self) -> None:
        """Wake everyone who waits."""
        self.rings += 1
        for loop, event in list(self._listeners):
            with contextlib.suppress(RuntimeError):  # a loop that was closed
                loop.call_soon_threadsafe(event.set)
