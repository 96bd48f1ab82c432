"""Answers in an SQLite file."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar

from redrive.brokers.sqlite.errors import BUSY_SECONDS, translate
from redrive.core.errors import BrokerUnavailable
from redrive.core.ports import Clock
from redrive.core.ports.answers import KEPT_FOR

T = TypeVar("T")

_SWEPT: Final = 100  # at most so many old answers go with each new one

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS answer (
    request_id TEXT PRIMARY KEY,
    body BLOB NOT NULL,
    forgotten_at REAL NOT NULL
) WITHOUT ROWID
"""
_INDEX: Final = "CREATE INDEX IF NOT EXISTS answer_forgotten_at ON answer (forgotten_at)"


class SqliteAnswers:
    """The `Answers` in one SQLite file, which may be shared by processes. One thread does the work."""

    def __init__(self, path: str | Path, *, clock: Clock, keep: timedelta = KEPT_FOR) -> None:
        self._path = str(path)
        self._clock = clock
        self._keep = keep
        self._thread = ThreadPoolExecutor(1, "redrive-answers")
        self._connection: sqlite3.Connection | None = None
        self._closing = threading.Lock()
        self._closed = False

    async def put(self, request_id: str, answer: bytes) -> None:
        await self._run(lambda connection: self._put(connection, request_id, answer))

    async def get(self, request_id: str) -> bytes | None:
        return await self._run(lambda connection: self._get(connection, request_id))

    async def aclose(self) -> None:
        with self._closing:
            if self._closed:
                return
            self._closed = True
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._closed:
            raise BrokerUnavailable("these answers have been closed")

        def job() -> T:
            try:
                return work(self._connection or self._open())
            except sqlite3.Error as error:
                self._close()
                raise translate(error, path=self._path) from error

        return await asyncio.get_running_loop().run_in_executor(self._thread, job)

    def _put(self, connection: sqlite3.Connection, request_id: str, answer: bytes) -> None:
        now = self._clock.now().timestamp()
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM answer WHERE request_id = ? AND forgotten_at <= ?", (request_id, now))
            row = (request_id, answer, now + self._keep.total_seconds())
            connection.execute("INSERT OR IGNORE INTO answer VALUES (?, ?, ?)", row)
            old = "SELECT request_id FROM answer WHERE forgotten_at <= ? LIMIT ?"
            connection.execute(f"DELETE FROM answer WHERE request_id IN ({old})", (now, _SWEPT))  # noqa: S608 - ours

    def _get(self, connection: sqlite3.Connection, request_id: str) -> bytes | None:
        now = self._clock.now().timestamp()
        query = "SELECT body FROM answer WHERE request_id = ? AND forgotten_at > ?"
        row = connection.execute(query, (request_id, now)).fetchone()
        return None if row is None else bytes(row[0])

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(_TABLE)
        connection.execute(_INDEX)
        self._connection = connection
        return connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
