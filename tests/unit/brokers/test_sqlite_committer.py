"""The one thread that touches the file."""

# ruff: noqa: ASYNC240 - a test may wait for the disk

import asyncio
import random
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from redrive.brokers.sqlite import committer, connection
from redrive.brokers.sqlite.transaction import Transaction
from redrive.brokers.sqlite.writer import Writer
from redrive.core.errors import BrokerError, BrokerUnavailable
from redrive.testing.clock import ManualClock

ADD = "INSERT INTO once VALUES (?, '', 0)"
HUGE = bytes(200_000)


class Recorded(sqlite3.Connection):
    """A connection that remembers what it was told, and can be told to fail its next commit of something written."""

    statements: list[str]
    failing: list[sqlite3.OperationalError]
    writes = False

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        self.statements.append(sql)
        if sql.startswith("BEGIN"):
            self.writes = sql == "BEGIN IMMEDIATE"
        if sql == "COMMIT" and self.writes and self.failing:
            raise self.failing.pop()
        return super().execute(sql, *values)


def failure(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("as arranged")
    error.sqlite_errorcode = code
    return error


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> type[Recorded]:
    Recorded.statements, Recorded.failing = [], []
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, **named, factory=Recorded))
    return Recorded


@pytest.fixture
async def writer(recorded: type[Recorded], file: Path, clock: ManualClock) -> AsyncIterator[Writer]:
    writer = Writer(str(file), clock=clock)
    await writer.read(keys)
    recorded.statements.clear()
    yield writer
    await writer.aclose()


def keys(transaction: Transaction) -> list[str]:
    return [key for (key,) in transaction.execute("SELECT key FROM once ORDER BY key")]


def add(*names: str) -> Any:
    return lambda transaction: transaction.executemany(ADD, [(name,) for name in names]).rowcount


class Gate:
    """An operation that holds the thread until it is opened, so that others gather behind it."""

    def __init__(self) -> None:
        self.reached, self.opened = asyncio.Event(), threading.Event()
        self._loop = asyncio.get_running_loop()

    def __call__(self, _: Transaction) -> None:
        self._loop.call_soon_threadsafe(self.reached.set)
        self.opened.wait()


async def behind_a_gate(writer: Writer, *operations: Any) -> list[Any]:
    """The results of operations that arrived while the thread was busy, and so share a transaction."""
    gate = Gate()
    first = asyncio.ensure_future(writer.read(gate))
    await gate.reached.wait()
    calls = [asyncio.ensure_future(writer.write(operation)) for operation in operations]
    await asyncio.sleep(0)
    gate.opened.set()
    await first
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_operations_that_gather_share_one_commit(writer: Writer, recorded: type[Recorded]) -> None:
    results = await behind_a_gate(writer, add("a"), add("b"), add("c"))

    assert results == [1, 1, 1]
    assert await writer.read(keys) == ["a", "b", "c"]
    assert recorded.statements.count("BEGIN IMMEDIATE") == 1


async def test_one_operation_that_fails_leaves_its_neighbours_alone(writer: Writer) -> None:
    def half_done(transaction: Transaction) -> None:
        transaction.execute(ADD, ("half",))
        raise LookupError("as arranged")

    before, failed, after = await behind_a_gate(writer, add("a"), half_done, add("b"))

    assert (before, after) == (1, 1)
    assert isinstance(failed, LookupError)
    assert await writer.read(keys) == ["a", "b"]


async def test_a_statement_that_fails_is_our_error_and_leaves_its_neighbours_alone(writer: Writer) -> None:
    results = await behind_a_gate(writer, add("a"), add("b", "a"), add("c"))

    assert isinstance(results[1], BrokerError)
    assert await writer.read(keys) == ["a", "c"]


async def test_a_commit_that_fails_fails_all_of_them_and_nothing_is_done(
    writer: Writer, recorded: type[Recorded]
) -> None:
    recorded.failing.append(failure(sqlite3.SQLITE_IOERR))
    results = await behind_a_gate(writer, add("a"), add("b"))

    assert [type(result) for result in results] == [BrokerUnavailable, BrokerUnavailable]
    assert await writer.read(keys) == []


async def test_what_does_not_fit_together_is_tried_one_by_one(writer: Writer) -> None:
    def fill(transaction: Transaction) -> None:
        transaction.execute("INSERT INTO fresh VALUES (1, 0, NULL, NULL, NULL, ?)", (HUGE,))

    await writer.write(lambda transaction: transaction.execute("PRAGMA max_page_count = 1").fetchall())
    await writer.write(add("z"))
    before, full, after = await behind_a_gate(writer, add("a"), fill, add("b"))

    assert (before, after) == (1, 1)
    assert isinstance(full, BrokerUnavailable)
    assert "full" in str(full)
    assert await writer.read(keys) == ["a", "b", "z"]


async def test_a_result_is_told_only_after_the_commit(writer: Writer, recorded: type[Recorded], file: Path) -> None:
    await writer.write(add("a"))
    with closing(sqlite3.connect(file)) as elsewhere:
        seen = elsewhere.execute("SELECT key FROM once").fetchall()

    assert "COMMIT" in recorded.statements
    assert seen == [("a",)]


async def test_an_operation_abandoned_before_it_began_is_never_done(writer: Writer) -> None:
    gate = Gate()
    first = asyncio.ensure_future(writer.read(gate))
    await gate.reached.wait()
    abandoned = asyncio.ensure_future(writer.write(add("a")))
    await asyncio.sleep(0)
    abandoned.cancel()
    await asyncio.wait([abandoned])
    gate.opened.set()
    await first

    assert await writer.read(keys) == []


async def test_what_was_done_for_somebody_who_no_longer_waits_is_undone(writer: Writer) -> None:
    gate = Gate()

    def slowly(transaction: Transaction) -> str:
        transaction.execute(ADD, ("a",))
        gate(transaction)
        return "a"

    def undo(key: str, transaction: Transaction) -> None:
        transaction.execute("DELETE FROM once WHERE key = ?", (key,))

    abandoned = asyncio.ensure_future(writer.write(slowly, undo=undo))
    await gate.reached.wait()
    abandoned.cancel()
    await asyncio.wait([abandoned])
    gate.opened.set()
    await writer.aclose()  # which waits for what is being undone

    with closing(sqlite3.connect(writer.path)) as file:
        left = file.execute("SELECT key FROM once").fetchall()

    assert abandoned.cancelled()
    assert left == []


async def test_what_was_done_for_a_loop_that_has_closed_is_undone(writer: Writer) -> None:
    done, closed = threading.Event(), threading.Event()

    def slowly(transaction: Transaction) -> str:
        transaction.execute(ADD, ("a",))
        done.set()
        closed.wait()
        return "a"

    def undo(key: str, transaction: Transaction) -> None:
        transaction.execute("DELETE FROM once WHERE key = ?", (key,))

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # it closes with a task in it, which is the point

    def begin_and_close() -> None:
        task = loop.create_task(writer.write(slowly, undo=undo))
        loop.run_until_complete(asyncio.wait([task], timeout=0))
        done.wait()
        loop.close()
        closed.set()

    await asyncio.to_thread(begin_and_close)

    assert await writer.read(keys) == []


async def test_a_lock_that_another_process_keeps_is_waited_for_and_then_told(
    writer: Writer, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, tried = asyncio.get_running_loop(), asyncio.Event()

    def between_tries(*_: float) -> float:
        loop.call_soon_threadsafe(tried.set)
        return 0

    monkeypatch.setattr(random, "uniform", between_tries)
    with closing(sqlite3.connect(file, isolation_level=None)) as busy:
        busy.execute("BEGIN IMMEDIATE")
        patient = asyncio.ensure_future(writer.write(add("a")))
        await tried.wait()
        busy.execute("ROLLBACK")
        done = await patient
        busy.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(connection, "BUSY_SECONDS", 0)
        with pytest.raises(BrokerUnavailable, match="locked"):
            await writer.write(add("b"))

    assert done == 1
    assert await writer.read(keys) == ["a"]


async def test_reading_locks_nobody_out(writer: Writer, recorded: type[Recorded]) -> None:
    await writer.read(keys)

    assert recorded.statements[0] == "BEGIN"


async def test_another_thread_with_a_loop_of_its_own_gets_its_own_answers(writer: Writer) -> None:
    await asyncio.to_thread(asyncio.run, writer.write(add("from a thread")))

    assert await writer.read(keys) == ["from a thread"]


async def test_a_closed_writer_refuses_and_closing_twice_is_closing_once(writer: Writer) -> None:
    await writer.aclose()
    await writer.aclose()
    with pytest.raises(BrokerUnavailable, match="closed"):
        await writer.read(keys)


async def test_whoever_waits_for_a_change_is_woken_when_the_writer_closes(writer: Writer) -> None:
    nothing: list[str] = []
    waiting = asyncio.ensure_future(writer.changed(1, look=keys, seen=nothing))
    await writer.read(keys)
    waited = not waiting.done()
    await writer.aclose()
    await waiting

    assert waited
    assert waiting.exception() is None


async def test_after_an_error_of_the_disk_the_file_is_opened_again(
    writer: Writer, recorded: type[Recorded], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def connect(path: str) -> sqlite3.Connection:
        opened.append(path)
        return connection.connect(path)

    monkeypatch.setattr(committer, "connect", connect)
    recorded.failing.append(failure(sqlite3.SQLITE_IOERR))
    with pytest.raises(BrokerUnavailable):
        await writer.write(add("a"))
    await writer.write(add("b"))

    assert await writer.read(keys) == ["b"]
    assert opened == [writer.path]


async def test_nothing_is_written_to_a_file_that_was_removed(writer: Writer, file: Path) -> None:
    await writer.write(add("a"))
    file.unlink()
    with pytest.raises(BrokerUnavailable, match="removed or replaced"):
        await writer.write(add("b"))

    assert not file.exists()
