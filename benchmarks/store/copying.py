"""Moving entries into the store, and back out: ours, and a bare copy loop on the same driver and sync level."""

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import Meter
from benchmarks.store.load import BATCH, NOW, letters
from redrive.clock import SystemClock
from redrive.core.audit import Act
from redrive.core.redrive import Planned, Redrive, RedriveOutcome
from redrive.core.wire import from_json, to_json
from redrive.stores.sql import SqlStore

_ENTRIES = "CREATE TABLE entry (id INTEGER PRIMARY KEY, letter_id TEXT, queue TEXT, error_type TEXT, body BLOB)"
_BARE = """
    CREATE TABLE letter (seq INTEGER PRIMARY KEY, letter_id TEXT UNIQUE, queue TEXT, error_type TEXT, state TEXT);
    CREATE TABLE letter_body (seq INTEGER PRIMARY KEY, body BLOB);
"""


def fill(path: str, messages: int) -> None:
    """Entries that wait to be collected, as JSON documents."""
    queue = _connect(_queue(path))
    queue.execute(_ENTRIES)
    rows = [(one.letter_id, one.queue, one.error_type, to_json(one)) for one in letters(0, messages, of=messages)]
    queue.executemany("INSERT INTO entry (letter_id, queue, error_type, body) VALUES (?, ?, ?, ?)", rows)
    queue.commit()
    queue.close()


def copy_bare(path: str, messages: int) -> dict[str, Any]:
    """Read 500, insert two rows each, commit, remove the entries."""
    meter, queue, store = Meter(messages), _connect(_queue(path)), _connect(path)
    store.executescript(_BARE)
    while True:
        rows = _next(queue)
        hot = [(row[0], row[1], row[2], row[3], "open") for row in rows]
        store.executemany("INSERT INTO letter VALUES (?, ?, ?, ?, ?)", hot)
        store.executemany("INSERT INTO letter_body VALUES (?, ?)", [(row[0], row[4]) for row in rows])
        store.commit()
        _remove(queue, rows)
        if meter.add(len(rows)):
            break
    queue.close()
    store.close()
    return meter.result()


def copy_ours(path: str, messages: int) -> dict[str, Any]:
    """The same, but read into letters, and collected by the store."""
    return asyncio.run(_copy_ours(path, Meter(messages)))


async def _copy_ours(path: str, meter: Meter) -> dict[str, Any]:
    queue, store = _connect(_queue(path)), SqlStore(path, clock=SystemClock())
    while True:
        rows = _next(queue)
        await store.collect([from_json(row[4]) for row in rows])
        _remove(queue, rows)
        if meter.add(len(rows)):
            break
    queue.close()
    await store.aclose()
    return meter.result()


def redrive_bare(path: str, messages: int) -> dict[str, Any]:
    """Read 500 letters, mark them as out, insert them as entries; then mark them as resolved."""
    queue, store = _connect(_queue(path)), _connect(path)
    store.executescript(_BARE)
    rows = [*queue.execute("SELECT id, letter_id, queue, error_type, body FROM entry")]
    store.executemany("INSERT INTO letter VALUES (?, ?, ?, ?, 'open')", [row[:4] for row in rows])
    store.executemany("INSERT INTO letter_body VALUES (?, ?)", [(row[0], row[4]) for row in rows])
    store.commit()
    queue.execute("CREATE TABLE sent (letter_id TEXT, body BLOB)")
    meter = Meter(messages)
    while True:
        found = [*store.execute(_OPEN)]
        store.executemany("UPDATE letter SET state = 'redriving' WHERE seq = ?", [(row[0],) for row in found])
        store.commit()
        queue.executemany("INSERT INTO sent VALUES (?, ?)", [row[1:] for row in found])
        queue.commit()
        store.executemany("UPDATE letter SET state = 'resolved' WHERE seq = ?", [(row[0],) for row in found])
        store.commit()
        if meter.add(len(found)):
            break
    queue.close()
    store.close()
    return meter.result()


_OPEN = f"""
    SELECT seq, letter_id, body FROM letter JOIN letter_body USING (seq) WHERE state = 'open' ORDER BY seq LIMIT {BATCH}
"""  # noqa: S608 - a constant


def redrive_ours(path: str, messages: int) -> dict[str, Any]:
    """Claim 500, insert them as entries, record them as sent, take in their outcomes."""
    return asyncio.run(_redrive_ours(path, messages))


async def _redrive_ours(path: str, messages: int) -> dict[str, Any]:
    queue, store = _connect(_queue(path)), SqlStore(path, clock=SystemClock())
    names = [one.letter_id for one in letters(0, messages, of=messages)]
    for first in range(0, messages, BATCH):
        await store.collect([*letters(first, min(BATCH, messages - first), of=messages)])
    redrive = Redrive(redrive_id="r1", created_at=NOW, by="bench", selection="all", total=messages)
    act = Act(who="bench", verb="letters.redrive", at=NOW)
    await store.create(redrive, [Planned(name, 1) for name in names], act=act)
    queue.execute("CREATE TABLE sent (letter_id TEXT, body BLOB)")
    meter = Meter(messages)
    while True:
        claimed = await store.claim("r1", step=0, limit=BATCH)
        queue.executemany("INSERT INTO sent VALUES (?, ?)", [(one.letter_id, one.body) for one in claimed])
        queue.commit()
        await store.sent("r1", {one.letter_id: "1" for one in claimed}, at=NOW)
        await store.collect([], [_success(one.letter_id) for one in claimed])
        if meter.add(len(claimed)):
            break
    queue.close()
    await store.aclose()
    return meter.result()


def _success(letter_id: str) -> RedriveOutcome:
    return RedriveOutcome(letter_id, 1, succeeded=True, reported_at=NOW, queue="", group="shop", message_id="")


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _next(queue: sqlite3.Connection) -> Sequence[Any]:
    statement = f"SELECT id, letter_id, queue, error_type, body FROM entry ORDER BY id LIMIT {BATCH}"  # noqa: S608
    return [*queue.execute(statement)]


def _remove(queue: sqlite3.Connection, rows: Sequence[Any]) -> None:
    queue.execute("DELETE FROM entry WHERE id <= ?", (rows[-1][0],))
    queue.commit()


def _queue(path: str) -> str:
    return str(Path(path).with_suffix(".db-queue"))
