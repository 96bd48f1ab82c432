"""SQLite: a file, its engine, and transactions on threads of their own.

A transaction runs as a whole on a thread, one thread for all that write: an async driver would change threads for every
step of every statement.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor
from sqlalchemy.pool import ConnectionPoolEntry

from redrive.core.errors import StoreError
from redrive.stores.sql import schema
from redrive.stores.sql.errors import translated

P = ParamSpec("P")
T = TypeVar("T")

BUSY_SECONDS = 10
_READERS = 4
_SETTINGS: Final = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "wal_autocheckpoint = 4000",  # pages: what the next batches change again is copied into the file once
)
_READ_CACHE: Final = 16 << 10  # KiB, at most, for each connection
_WRITE_CACHE: Final = 64 << 10  # the same: a batch changes pages all over the indexes, and the next one those again
_PAUSES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


class SqliteDatabase:
    """A `Database` in a file, which is created if it is not there. Safe for any number of event loops, too."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reading = _open_engine(path, "BEGIN", connections=_READERS, cache=_READ_CACHE)
        # A transaction that reads first and writes later can be refused in the middle: it takes the lock at once.
        self._writing = _open_engine(path, "BEGIN IMMEDIATE", connections=1, cache=_WRITE_CACHE)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="redrive-store-reader")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="redrive-store-writer")
        self._ready = False
        self._closed = False

    async def read(self, call: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(self._readers, self._reading, lambda connection: call(connection, *args, **kwargs))

    async def write(self, call: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(self._writer, self._writing, lambda connection: call(connection, *args, **kwargs))

    async def aclose(self) -> None:
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
        if not self._transact(self._reading, schema.is_current):
            self._transact(self._writing, schema.migrate)
        self._ready = True

    def _close(self) -> None:
        self._readers.shutdown()
        self._writer.shutdown()
        self._reading.dispose()
        self._writing.dispose()


def _open_engine(path: Path, begin: str, *, connections: int, cache: int) -> Engine:
    """An engine on a file; nothing is opened yet."""
    engine = create_engine(
        URL.create("sqlite+pysqlite", database=str(path)),
        connect_args={"timeout": BUSY_SECONDS, "isolation_level": None},
        pool_size=connections,
        max_overflow=0,
        hide_parameters=True,  # payloads do not belong into messages
    )
    event.listen(engine, "connect", partial(_settle_in, settings=(*_SETTINGS, f"cache_size = -{cache}")))
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


def _settle_in(connection: DBAPIConnection, _entry: ConnectionPoolEntry, *, settings: Iterable[str]) -> None:
    cursor = connection.cursor()
    try:
        for setting in settings:
            _insist(cursor, f"PRAGMA {setting}")
        cursor.close()
    except BaseException:
        connection.close()  # nobody else knows of it yet
        raise


def _insist(cursor: DBAPICursor, statement: str) -> None:
    """Those who open a new file at once are told that it is locked without waiting: only one of them makes it WAL."""
    for pause in _PAUSES:
        try:
            cursor.execute(statement)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            time.sleep(pause)
        else:
            return
    cursor.execute(statement)
