"""What an operation gets to work with, and how instants are written."""

import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, overload

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)
LAST: Final = datetime.max.replace(tzinfo=UTC)


class Transaction:
    """One open transaction: what is done here becomes visible with all the rest of it, or not at all.

    `at` and `now` are the same instant for everything in it. An operation adds to `touched` every lane in which
    there is something new to fetch.
    """

    __slots__ = ("_connection", "at", "execute", "executemany", "now", "touched")

    def __init__(self, connection: sqlite3.Connection, *, at: datetime) -> None:
        self._connection = connection
        self.execute: Callable[..., sqlite3.Cursor] = connection.execute
        self.executemany: Callable[..., sqlite3.Cursor] = connection.executemany
        self.at = at
        self.now = as_micros(at)
        self.touched: set[int] = set()

    @property
    def open(self) -> bool:
        """Whether the transaction still stands: some errors make SQLite undo all of it."""
        return self._connection.in_transaction

    def insert(self, sql: str, values: Sequence[object]) -> int:
        """Insert one row; return its number."""
        number = self.execute(sql, values).lastrowid
        assert number is not None  # noqa: S101 - an INSERT that did not raise has a row
        return number


@overload
def as_micros(at: datetime) -> int: ...
@overload
def as_micros(at: datetime | None) -> int | None: ...
def as_micros(at: datetime | None) -> int | None:
    """An instant as the file keeps it: exact, in microseconds."""
    return None if at is None else (at - EPOCH) // MICROSECOND


@overload
def as_instant(micros: int) -> datetime: ...
@overload
def as_instant(micros: int | None) -> datetime | None: ...
def as_instant(micros: int | None) -> datetime | None:
    """The instant that the file keeps; the last one there is for what lies beyond the calendar."""
    try:
        return None if micros is None else EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return LAST
