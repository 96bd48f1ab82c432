"""Noticing that there is something to fetch, whoever put it there.

What this process does is known by the lanes it touched. What other processes do shows in SQLite's `data_version`,
which costs a look at shared memory: every 10 ms at first, every 50 ms when nothing happens.
"""

import asyncio
import sqlite3
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from redrive.brokers.sqlite.job import Operation, wake
from redrive.brokers.sqlite.transaction import Transaction

SOONEST: Final = 0.01
LATEST: Final = 0.05
GROWTH: Final = 1.25


@dataclass(slots=True, eq=False)
class Watch:
    """Somebody who waits until `look` at a lane shows something else than `seen`."""

    lane: int
    look: Operation
    seen: Any
    future: asyncio.Future[None]
    new: bool = True

    def differs(self, transaction: Transaction) -> bool:
        """Whether it is time to wake up; an error is news as well."""
        try:
            return bool(self.look(transaction) != self.seen)
        except Exception:  # noqa: BLE001 - whoever is woken will meet it where it can be raised
            return True


class Lookout:
    """All watches of one committer; used by its thread alone."""

    def __init__(self) -> None:
        self._watches: list[Watch] = []
        self._version: int | None = None
        self._interval = SOONEST

    @property
    def interval(self) -> float | None:
        """Seconds until the next look; None while nobody waits."""
        return self._interval if self._watches else None

    def add(self, watch: Watch) -> None:
        """Take on somebody who waits."""
        self._watches.append(watch)

    def look(self, connection: sqlite3.Connection | None, *, at: datetime, touched: AbstractSet[int]) -> None:
        """Wake everyone for whom something has changed, and without a connection everyone.

        `touched` are the lanes into which this process has put something.
        """
        if not self._watches:
            return
        if connection is None:
            self._wake_all()
            return
        anywhere = self._changed_elsewhere(connection)
        self._interval = SOONEST if anywhere else min(self._interval * GROWTH, LATEST)
        transaction = Transaction(connection, at=at)
        waiting = []
        for watch in self._watches:
            if watch.future.done():
                continue
            if (watch.new or anywhere or watch.lane in touched) and watch.differs(transaction):
                wake(watch.future)
            else:
                watch.new = False
                waiting.append(watch)
        self._watches = waiting

    def _changed_elsewhere(self, connection: sqlite3.Connection) -> bool:
        try:
            (version,) = connection.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error:
            return True
        before, self._version = self._version, version
        return bool(version != before)

    def _wake_all(self) -> None:
        for watch in self._watches:
            wake(watch.future)
        self._watches = []
