"""The asynchronous face of the committer."""

import asyncio
import os
from collections.abc import Callable
from typing import Any, TypeVar

from redrive.brokers.sqlite.committer import Committer
from redrive.brokers.sqlite.job import Job
from redrive.brokers.sqlite.lookout import Watch
from redrive.brokers.sqlite.transaction import Transaction
from redrive.core.errors import BrokerUnavailable
from redrive.core.ports import Clock

T = TypeVar("T")


class Writer:
    """Operations on the file, from any event loop of any thread.

    Each process has a thread and a connection of its own: neither crosses a fork. Results are durable when they are
    returned. Raises `BrokerUnavailable` after `aclose`, and what `errors.translate` makes of SQLite's exceptions.
    """

    def __init__(self, path: str, *, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        # Those of a parent process stay here untouched: closing an inherited connection would disturb the parent's.
        self._committers: dict[int, Committer] = {}
        self._closed = False

    async def write(
        self, operation: Callable[[Transaction], T], *, undo: Callable[[T, Transaction], object] | None = None
    ) -> T:
        """Carry out an operation and return its result once it is on the disk.

        If the caller is cancelled before it has begun, it is not done; if it was done and nobody takes the result
        any more, `undo` is called with it.
        """
        result: T = await self._run(Job(operation, undo=undo))
        return result

    async def read(self, operation: Callable[[Transaction], T]) -> T:
        """The result of an operation that only reads; it sees one state of the file and locks nobody out."""
        result: T = await self._run(Job(operation, writes=False))
        return result

    async def changed(self, lane: int, *, look: Callable[[Transaction], T], seen: T) -> None:
        """Return when `look` at this lane gives something else than `seen`."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._committer().put(Watch(lane, look, seen, future))
        await future

    async def aclose(self) -> None:
        """Finish what was asked for and close the file. Idempotent."""
        committer = None if self._closed else self._committers.get(os.getpid())
        self._closed = True
        if committer is not None:
            # By the time this is answered, everyone who waited has been, and what was abandoned is being undone.
            answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            committer.put(answered)
            await answered
            committer.put(None)
            await asyncio.to_thread(committer.join)

    async def _run(self, job: Job) -> Any:
        job.future = asyncio.get_running_loop().create_future()
        self._committer().put(job)
        return await job.future

    def _committer(self) -> Committer:
        if self._closed:
            raise BrokerUnavailable(f"{self.path}: the broker is closed")
        pid = os.getpid()
        committer = self._committers.get(pid)
        if committer is None:
            fresh = Committer(self.path, clock=self._clock)
            committer = self._committers.setdefault(pid, fresh)  # atomic: two threads agree on one
            if committer is fresh:
                committer.start()
        return committer
