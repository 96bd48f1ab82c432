"""What handlers share for as long as a worker runs: opened before the first message, closed after the last."""

import contextlib
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from redrive.core.errors import ConfigError

Lifespan = Callable[[], AsyncIterator[Any] | AbstractAsyncContextManager[Any]]
"""An async generator function that yields once, or a function that returns an async context manager."""


@contextlib.asynccontextmanager
async def enter(lifespan: Lifespan | None) -> AsyncIterator[tuple[object, ...]]:
    """Open a lifespan; give what it yields, as the things that handlers may ask for by annotation."""
    if lifespan is None:
        yield ()
        return
    opened: Any = lifespan()
    if inspect.isasyncgen(opened):
        opened = contextlib.asynccontextmanager(lambda: opened)()
    if not isinstance(opened, AbstractAsyncContextManager):
        raise ConfigError(f"lifespan: expected an async generator or an async context manager, got {opened!r}")
    async with opened as resources:
        yield () if resources is None else (resources,)
