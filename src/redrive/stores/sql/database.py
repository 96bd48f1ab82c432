"""The database at hand: transactions on threads of their own.

A transaction runs as a whole on a thread, one thread for all that write: an async driver would change threads for every
step of every statement. What runs there are plain functions over a connection.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine

from redrive.core.errors import StoreError
from redrive.stores.sql import schema
from redrive.stores.sql.errors import translated
from redrive.stores.sql.sqlite import READERS, WRITES, open_engine

P = ParamSpec("P")
T = TypeVar("T")


class Database:
    """An SQLite file. Opened, created and brought forward at the first call; safe for many tasks and processes.

    Every call is one transaction. Raises `StoreUnavailable` and `StoreError`, never what the driver raises.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._engine = open_engine(path)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="redrive-store-reader")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="redrive-store-writer")
        self._writing = self._engine.execution_options(**{WRITES: True})
        self._ready = False
        self._closed = False

    async def read(self, call: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that only reads; many at a time."""
        return await self._run(self._readers, self._engine, lambda connection: call(connection, *args, **kwargs))

    async def write(self, call: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that writes; one at a time. It is carried out even if the caller is cancelled meanwhile."""
        return await self._run(self._writer, self._writing, lambda connection: call(connection, *args, **kwargs))

    async def aclose(self) -> None:
        """Finish what runs, and close. Idempotent."""
        self._closed = True
        await asyncio.to_thread(self._close)

    async def _run(self, threads: ThreadPoolExecutor, engine: Engine, call: Callable[[Connection], T]) -> T:
        if self._closed:
            raise StoreError(f"{self._path}: the store has been closed")
        loop = asyncio.get_running_loop()
        if not self._ready:
            await loop.run_in_executor(self._writer, self._prepare)
        return await loop.run_in_executor(threads, self._transact, engine, call)

    def _transact(self, engine: Engine, call: Callable[[Connection], T]) -> T:
        with translated(str(self._path)), engine.begin() as connection:
            return call(connection)

    def _prepare(self) -> None:
        if self._ready:
            return
        if not self._transact(self._engine, schema.is_current):
            self._transact(self._writing, schema.migrate)
        self._ready = True

    def _close(self) -> None:
        self._readers.shutdown()
        self._writer.shutdown()
        self._engine.dispose()
