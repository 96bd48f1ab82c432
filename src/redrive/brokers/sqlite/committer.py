"""The one thread that touches the file: it commits together what arrives together.

While one transaction is being written to the disk, the next operations gather. They then share a transaction and its
one fsync, each inside a savepoint of its own, so that one that fails leaves the others alone. Nobody hears of a result
before the commit.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Final

from redrive.brokers.sqlite.connection import begin_writing, connect, file_at
from redrive.brokers.sqlite.errors import is_full, spoils_connection, translate
from redrive.brokers.sqlite.fork import Halt, watch_over
from redrive.brokers.sqlite.job import Job, wake
from redrive.brokers.sqlite.lookout import Lookout, Watch
from redrive.brokers.sqlite.transaction import Transaction
from redrive.core.errors import BrokerUnavailable
from redrive.core.ports import Clock

MOST_AT_ONCE: Final = 1000

Entry = Job | Watch | Halt | asyncio.Future[Any] | None


class _RolledBackError(Exception):
    """SQLite undid the whole transaction because of one operation in it."""


class Committer(threading.Thread):
    """Carries out jobs in the order in which they come; see the module.

    It opens the file with the first job and ends when told to. Its connection never leaves this thread.
    """

    def __init__(self, path: str, *, clock: Clock) -> None:
        super().__init__(name="redrive-sqlite", daemon=True)
        self._path = path
        self._clock = clock
        self._inbox: SimpleQueue[Entry] = SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._lookout = Lookout()
        self._touched: set[int] = set()
        watch_over(self)

    def put(self, entry: Entry) -> None:
        """Hand over a job or a watch; a bare future is completed when its turn comes; None ends the thread."""
        self._inbox.put(entry)

    def run(self) -> None:
        going = True
        while going or not self._inbox.empty():
            entries = self._gather()
            going = going and None not in entries
            jobs = [entry for entry in entries if isinstance(entry, Job) and not entry.abandoned]
            if jobs:
                self._commit(jobs)
                self._answer(jobs)
            for entry in entries:
                if isinstance(entry, Watch):
                    self._lookout.add(entry)
                elif isinstance(entry, Halt):
                    self._halt(entry)
                elif isinstance(entry, asyncio.Future):
                    wake(entry)
            self._lookout.look(self._connection, at=self._clock.now(), touched=self._touched)
            self._touched.clear()
        self._close()
        self._lookout.look(None, at=self._clock.now(), touched=self._touched)

    def _gather(self) -> list[Entry]:
        """Everything that has come by now; empty if nothing came and it is time to look at the file."""
        entries: list[Entry] = []
        with suppress(Empty):
            entries.append(self._inbox.get(timeout=self._lookout.interval))
            while len(entries) < MOST_AT_ONCE:
                entries.append(self._inbox.get_nowait())
        return entries

    def _commit(self, jobs: Sequence[Job]) -> None:
        """Carry out jobs in one transaction; give each its result or its error."""
        for job in jobs:
            job.result = job.error = None
        try:
            connection = self._open()
            if any(job.writes for job in jobs):
                begin_writing(connection)
            else:
                connection.execute("BEGIN")
            transaction = Transaction(connection, at=self._clock.now())  # not before: we may have waited for a lock
            if len(jobs) == 1:
                jobs[0].result = jobs[0].operation(transaction)
            else:
                for job in jobs:
                    self._carry_out(job, connection=connection, transaction=transaction)
            connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - whatever it is, somebody waits for an answer
            self._roll_back(error)
            if len(jobs) > 1 and (isinstance(error, _RolledBackError) or is_full(error)):
                for job in jobs:  # nothing was committed, and what did not fit together may fit one by one
                    self._commit([job])
                return
            for job in jobs:
                job.result, job.error = None, translate(error, path=self._path)
        else:
            self._touched |= transaction.touched

    def _carry_out(self, job: Job, *, connection: sqlite3.Connection, transaction: Transaction) -> None:
        """One of several: what it did is undone if it fails, and the others go on."""
        connection.execute("SAVEPOINT job")
        try:
            job.result = job.operation(transaction)
        except Exception as error:
            if not connection.in_transaction:
                raise _RolledBackError from error
            connection.execute("ROLLBACK TO job")
            job.error = translate(error, path=self._path)
        connection.execute("RELEASE job")

    def _open(self) -> sqlite3.Connection:
        if self._file is not None and file_at(self._path) != self._file:
            raise BrokerUnavailable(
                f"{self._path}: the file was removed or replaced while it was in use; "
                "nothing is written to either until this process is started again"
            )
        if self._connection is None:
            self._connection = connect(self._path)
            self._file = self._file or file_at(self._path)
        return self._connection

    def _roll_back(self, error: Exception) -> None:
        if self._connection is None:
            return
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._close()
        else:
            if spoils_connection(error):
                self._close()

    def _halt(self, halt: Halt) -> None:
        self._close()
        halt.closed.set()
        halt.over.wait()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _answer(self, jobs: Iterable[Job]) -> None:
        """Tell each loop once about all of its jobs."""
        by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
        for job in jobs:
            if job.abandoned:
                self._undo([job])
            elif job.future is not None:
                by_loop.setdefault(job.future.get_loop(), []).append(job)
        for loop, answered in by_loop.items():
            try:
                loop.call_soon_threadsafe(self._hand_over, answered)
            except RuntimeError:  # the loop is closed: nobody will take these
                self._undo(answered)

    def _undo(self, jobs: Iterable[Job]) -> None:
        if undone := [undo for job in jobs if (undo := job.undone())]:
            self._commit(undone)

    def _hand_over(self, jobs: Iterable[Job]) -> None:
        """Runs in the loop of those who wait."""
        for job in jobs:
            if job.future is None or job.future.cancelled():
                if undo := job.undone():
                    self.put(undo)
            elif job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)
