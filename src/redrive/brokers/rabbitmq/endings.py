"""How calls to the client end: answered, failed, or left alone."""

import asyncio
from collections.abc import Iterable
from typing import Any

from aiormq.abc import AbstractConnection


def looked_at(task: asyncio.Future[Any]) -> None:
    """What nobody waits for any more may fail in peace."""
    if not task.cancelled():
        task.exception()


def cancel(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """End calls for which nobody waits any more."""
    for task in tasks:
        task.add_done_callback(looked_at)
        task.cancel()


def end_of(task: asyncio.Future[Any]) -> BaseException | None:
    """How a call failed, if it did. What waits on a connection that ends is cancelled by the client."""
    return asyncio.CancelledError() if task.cancelled() else task.exception()


async def close(connection: AbstractConnection) -> None:
    """Close a connection, whatever its state; one that does not answer is left alone."""
    closing = asyncio.ensure_future(connection.close())
    closing.add_done_callback(looked_at)
    await asyncio.wait([closing], timeout=5)
    closing.cancel()
