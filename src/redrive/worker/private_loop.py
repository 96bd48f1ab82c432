"""An event loop of our own, for code that has none or must not depend on somebody else's."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class PrivateLoop:
    """An event loop on a daemon thread; it starts with the first work and runs until the process ends.

    Safe from any thread, with or without an event loop running there. A child made by fork has no threads, so there
    it starts anew: Celery's prefork workers import a task in the parent and run it in the child.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inherited: list[asyncio.AbstractEventLoop | None] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._leave_to_parent)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start the work; cancelling the future cancels it."""
        with self._lock:
            if self._loop is None:
                self._loop = _start_loop()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work while this thread waits. A KeyboardInterrupt here cancels it."""
        future = self.submit(work)
        try:
            return future.result()
        finally:
            future.cancel()

    def _leave_to_parent(self) -> None:
        # Kept, not dropped: its finalizer would work on file descriptors that the parent still uses.
        self._inherited.append(self._loop)
        self._loop = None
        self._lock = threading.Lock()


def _start_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=_run_for_ever, args=(loop,), name="redrive-loop", daemon=True).start()
    return loop


def _run_for_ever(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    with contextlib.closing(loop):
        loop.run_forever()


PRIVATE_LOOP = PrivateLoop()
"""The one loop of the process: a queue that is used by several sync handlers sees the same loop every time."""
