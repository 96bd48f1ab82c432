"""What is put before the committer: operations, and how their answers find the way back to an event loop."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from redrive.brokers.sqlite.transaction import Transaction

Operation = Callable[[Transaction], Any]
Undo = Callable[[Any, Transaction], Any]


@dataclass(slots=True, eq=False)
class Job:
    """An operation that somebody waits for. `undo` takes its result back if nobody waits any more."""

    operation: Operation
    future: asyncio.Future[Any] | None = None
    writes: bool = True
    undo: Undo | None = None
    result: Any = None
    error: Exception | None = None

    @property
    def abandoned(self) -> bool:
        """Whether somebody asked for this and waits no longer."""
        return self.future is not None and self.future.cancelled()

    def undone(self) -> "Job | None":
        """What takes this back, if it was done and can be."""
        if self.undo is None or self.error is not None:
            return None
        return Job(partial(self.undo, self.result))


def wake(future: asyncio.Future[None]) -> None:
    """Complete a future from another thread than its loop's; one that nobody waits for any more is passed over."""
    with suppress(RuntimeError):  # its loop is closed
        future.get_loop().call_soon_threadsafe(_complete, future)


def _complete(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
