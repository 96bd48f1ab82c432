"""Letters as a loop written by hand keeps them: two tables, no index but on the letter's id, nothing else."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any, Protocol

import asyncpg

from benchmarks.store.load import BATCH

_TABLES = """
    CREATE TABLE letter (seq {number} PRIMARY KEY, letter_id TEXT UNIQUE, queue TEXT, error_type TEXT, state TEXT);
    CREATE TABLE letter_body (seq {number} PRIMARY KEY, body {bytes});
"""
_OPEN = f"""
    SELECT seq, letter_id, body FROM letter JOIN letter_body USING (seq) WHERE state = 'open' ORDER BY seq LIMIT {BATCH}
"""  # noqa: S608 - a constant


class Bare(Protocol):
    """Every call is one transaction."""

    async def add(self, rows: Sequence[Any]) -> None:
        """Keep letters as open: each its number, id, queue, error type and body."""

    async def next(self) -> Sequence[Any]:
        """The first 500 that are open: each its number, id and body."""

    async def mark(self, rows: Sequence[Any], state: str) -> None:
        """Give these letters, each with its number in front, another state."""


@asynccontextmanager
async def bare(path: str, *, url: str | None) -> AsyncIterator[Bare]:
    """New tables in a file, or in the database at `url`."""
    if url is None:
        with closing(connect(path)) as file:
            file.executescript(_TABLES.format(number="INTEGER", bytes="BLOB"))
            yield _InFile(file)
    else:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(_TABLES.format(number="BIGINT", bytes="BYTEA"))
            yield _OnServer(connection)
        finally:
            await connection.close()


def connect(path: str) -> sqlite3.Connection:
    """A file in the mode that the store's own files have."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


class _InFile:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def add(self, rows: Sequence[Any]) -> None:
        self._connection.executemany("INSERT INTO letter VALUES (?, ?, ?, ?, 'open')", [row[:4] for row in rows])
        self._connection.executemany("INSERT INTO letter_body VALUES (?, ?)", [(row[0], row[4]) for row in rows])
        self._connection.commit()

    async def next(self) -> Sequence[Any]:
        return [*self._connection.execute(_OPEN)]

    async def mark(self, rows: Sequence[Any], state: str) -> None:
        marks = [(state, row[0]) for row in rows]
        self._connection.executemany("UPDATE letter SET state = ? WHERE seq = ?", marks)
        self._connection.commit()


class _OnServer:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def add(self, rows: Sequence[Any]) -> None:
        async with self._connection.transaction():
            letters = "INSERT INTO letter VALUES ($1, $2, $3, $4, 'open')"
            await self._connection.executemany(letters, [row[:4] for row in rows])
            bodies = [(row[0], row[4]) for row in rows]
            await self._connection.executemany("INSERT INTO letter_body VALUES ($1, $2)", bodies)

    async def next(self) -> Sequence[Any]:
        found: Sequence[Any] = await self._connection.fetch(_OPEN)
        return found

    async def mark(self, rows: Sequence[Any], state: str) -> None:
        marked = [row[0] for row in rows]
        await self._connection.execute("UPDATE letter SET state = $1 WHERE seq = ANY($2)", state, marked)
