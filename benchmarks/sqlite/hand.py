"""What a good engineer would write by hand: a table, an index on due, 500 messages per transaction.

Leasing a message moves its due time behind the lease: a worker that dies gives its messages back by saying nothing.
"""

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.load import FAILS, Failed, bodies
from benchmarks.measure import Meter

BATCH = 500
LEASE = 60_000_000  # instants and durations are microseconds
ATTEMPTS = 3

TABLES = """
    CREATE TABLE message (
        id INTEGER PRIMARY KEY,
        due_at INTEGER NOT NULL,
        failures INTEGER NOT NULL DEFAULT 0,
        body BLOB NOT NULL
    );
    CREATE INDEX message_due_at ON message (due_at);
    CREATE TABLE dead (id INTEGER PRIMARY KEY, failed_at INTEGER, error TEXT, failures INTEGER, body BLOB NOT NULL);
"""
CLAIM = f"""
    UPDATE message SET due_at = ?
    WHERE id IN (SELECT id FROM message WHERE due_at <= ? ORDER BY due_at LIMIT {BATCH})
    RETURNING id, failures, body
"""  # noqa: S608 - a constant

Row = tuple[int, int, bytes]


def fill(path: str, messages: int) -> None:
    """A file in which so many messages wait."""
    connection = _connect(path)
    connection.executescript(TABLES)
    connection.execute("BEGIN IMMEDIATE")
    now = _now()
    rows = ((now, body) for body in bodies(0, messages))
    connection.executemany("INSERT INTO message (due_at, body) VALUES (?, ?)", rows)
    connection.execute("COMMIT")
    connection.close()


def drain(path: str, messages: int) -> dict[str, Any]:
    """Lease in one transaction, handle, ack in another."""
    return asyncio.run(_drain(path, Meter(messages)))


def drain_merged(path: str, messages: int) -> dict[str, Any]:
    """Ack the last batch and lease the next in one transaction."""
    return asyncio.run(_drain_merged(path, Meter(messages)))


def drain_failing(path: str, messages: int) -> dict[str, Any]:
    """As `drain`, where a failed message is tried three times in all and then moved to the table of the dead."""
    return asyncio.run(_drain_failing(path, Meter(messages)))


async def _handle(_body: bytes) -> None:
    pass


async def _fail_sometimes(body: bytes) -> None:
    if FAILS in body:
        raise Failed("this message always fails")


async def _drain(path: str, meter: Meter) -> dict[str, Any]:
    connection = _connect(path)
    while True:
        connection.execute("BEGIN IMMEDIATE")
        rows = _claim(connection)
        connection.execute("COMMIT")
        for _, _, body in rows:
            await _handle(body)
        connection.execute("BEGIN IMMEDIATE")
        _delete(connection, [row[0] for row in rows])
        connection.execute("COMMIT")
        if meter.add(len(rows)):
            return meter.result()


async def _drain_merged(path: str, meter: Meter) -> dict[str, Any]:
    connection = _connect(path)
    rows: list[Row] = []
    while True:
        connection.execute("BEGIN IMMEDIATE")
        _delete(connection, [row[0] for row in rows])
        done, rows = len(rows), _claim(connection)
        connection.execute("COMMIT")
        if meter.add(done):
            return meter.result()
        for _, _, body in rows:
            await _handle(body)


async def _drain_failing(path: str, meter: Meter) -> dict[str, Any]:
    connection = _connect(path)
    while True:
        connection.execute("BEGIN IMMEDIATE")
        rows = _claim(connection)
        connection.execute("COMMIT")
        done: list[int] = []
        failed: list[tuple[Row, str]] = []
        for row in rows:
            try:
                await _fail_sometimes(row[2])
            except Exception as error:  # noqa: BLE001 - whatever a handler raises is its failure
                failed.append((row, f"{type(error).__name__}: {error}"))
            else:
                done.append(row[0])
        connection.execute("BEGIN IMMEDIATE")
        dead = _retry_or_bury(connection, failed)
        _delete(connection, done + dead)
        connection.execute("COMMIT")
        if meter.add(len(done) + len(dead)):
            return meter.result()


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _claim(connection: sqlite3.Connection) -> list[Row]:
    now = _now()
    return connection.execute(CLAIM, (now + LEASE, now)).fetchall()


def _delete(connection: sqlite3.Connection, ids: Sequence[int]) -> None:
    marks = ",".join("?" * len(ids))
    connection.execute(f"DELETE FROM message WHERE id IN ({marks})", ids)  # noqa: S608 - question marks


def _retry_or_bury(connection: sqlite3.Connection, failed: Sequence[tuple[Row, str]]) -> list[int]:
    """Make failed messages due again at once; move those that have failed too often. Returns the ids of the dead."""
    now = _now()
    again = [(now, row[0]) for row, _ in failed if row[1] + 1 < ATTEMPTS]
    dead = [(row[0], now, error, row[1] + 1, row[2]) for row, error in failed if row[1] + 1 >= ATTEMPTS]
    connection.executemany("UPDATE message SET due_at = ?, failures = failures + 1 WHERE id = ?", again)
    connection.executemany("INSERT INTO dead VALUES (?, ?, ?, ?, ?)", dead)
    return [row[0] for row in dead]


def _now() -> int:
    return time.time_ns() // 1000
