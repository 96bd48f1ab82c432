"""Moving entries into the store, and back out: ours, and a bare copy loop on the same driver and sync level.

Each program gets a `path`, beside which the entries wait in another file. The store is the file at that path, or the
database at `url`; then `server` is the process whose CPU is noted too.
"""

import asyncio
import sqlite3
from collections.abc import Coroutine, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.measure import Meter
from benchmarks.runs import Case
from benchmarks.store.bare import bare, connect
from benchmarks.store.load import BATCH, NOW, letters, success
from redrive.clock import SystemClock
from redrive.core.audit import Act
from redrive.core.redrive import Planned, Redrive
from redrive.core.wire import from_json, to_json
from redrive.stores.sql import SqlStore
from redrive.wiring import event_loop_factory, freeze_startup

_ENTRIES = "CREATE TABLE entry (id INTEGER PRIMARY KEY, letter_id TEXT, queue TEXT, error_type TEXT, body BLOB)"
_NEXT = f"SELECT id, letter_id, queue, error_type, body FROM entry ORDER BY id LIMIT {BATCH}"  # noqa: S608 - a constant

PROGRAMS = {
    "bare: copy 500 at a time": "copy_bare",
    "Redrive: collect 500 at a time": "copy_ours",
    "bare: mark, copy back, mark": "redrive_bare",
    "Redrive: claim, copy back, record, take in the outcome": "redrive_ours",
}
"""The rows of the comparison: ours behind its bare loop."""


def cases(messages: int, *, store: str = "") -> list[Case]:
    """What is compared, each row with the name of its store in front if there are several."""
    sizes = {"messages": messages}
    return [
        Case(
            name=f"{store}, {name}" if store else name,
            prepare=f"{__name__}:fill",
            preparation=sizes,
            run=f"{__name__}:{program}",
            arguments=sizes,
        )
        for name, program in PROGRAMS.items()
    ]


def fill(path: str, messages: int) -> None:
    """Entries that wait to be collected, as JSON documents."""
    with closing(connect(_queue(path))) as queue:
        queue.execute(_ENTRIES)
        rows = [(one.letter_id, one.queue, one.error_type, to_json(one)) for one in letters(0, messages, of=messages)]
        queue.executemany("INSERT INTO entry (letter_id, queue, error_type, body) VALUES (?, ?, ?, ?)", rows)
        queue.commit()


def copy_bare(path: str, messages: int, url: str | None = None, server: int | None = None) -> dict[str, Any]:
    """Read 500, insert two rows each, commit, remove the entries."""

    async def run() -> dict[str, Any]:
        async with bare(path, url=url) as store:
            with closing(connect(_queue(path))) as queue:
                meter = _meter(messages, server)
                while True:
                    rows = _next(queue)
                    await store.add(rows)
                    _remove(queue, rows)
                    if meter.add(len(rows)):
                        return meter.result()

    return _run(run())


def copy_ours(path: str, messages: int, url: str | None = None, server: int | None = None) -> dict[str, Any]:
    """The same, but read into letters, and collected by the store."""

    async def run() -> dict[str, Any]:
        store = SqlStore(url or path, clock=SystemClock())
        await store.stats()  # which creates its tables
        with closing(connect(_queue(path))) as queue:
            meter = _meter(messages, server)
            while True:
                rows = _next(queue)
                await store.collect([from_json(row[4]) for row in rows])
                _remove(queue, rows)
                if meter.add(len(rows)):
                    break
        await store.aclose()
        return meter.result()

    return _run(run())


def redrive_bare(path: str, messages: int, url: str | None = None, server: int | None = None) -> dict[str, Any]:
    """Read 500 letters, mark them as out, insert them as entries; then mark them as resolved."""

    async def run() -> dict[str, Any]:
        async with bare(path, url=url) as store:
            with closing(connect(_queue(path))) as queue:
                await store.add([*queue.execute("SELECT id, letter_id, queue, error_type, body FROM entry")])
                _make_room(queue)
                meter = _meter(messages, server)
                while True:
                    found = await store.next()
                    await store.mark(found, "redriving")
                    _send(queue, [(row[1], row[2]) for row in found])
                    await store.mark(found, "resolved")
                    if meter.add(len(found)):
                        return meter.result()

    return _run(run())


def redrive_ours(path: str, messages: int, url: str | None = None, server: int | None = None) -> dict[str, Any]:
    """Claim 500, insert them as entries, record them as sent, take in their outcomes."""

    async def run() -> dict[str, Any]:
        store = SqlStore(url or path, clock=SystemClock())
        await _plan(store, messages)
        with closing(connect(_queue(path))) as queue:
            _make_room(queue)
            meter = _meter(messages, server)
            while True:
                claimed = await store.claim("r1", step=0, limit=BATCH)
                _send(queue, [(one.letter_id, one.body) for one in claimed])
                await store.sent("r1", {one.letter_id: "1" for one in claimed}, at=NOW)
                await store.collect([], [success(one.letter_id) for one in claimed])
                if meter.add(len(claimed)):
                    break
        await store.aclose()
        return meter.result()

    return _run(run())


async def _plan(store: SqlStore, messages: int) -> None:
    """A redrive of so many letters, all in the store."""
    for first in range(0, messages, BATCH):
        await store.collect([*letters(first, min(BATCH, messages - first), of=messages)])
    redrive = Redrive(redrive_id="r1", created_at=NOW, by="bench", selection="all", total=messages)
    act = Act(who="bench", verb="letters.redrive", at=NOW)
    items = [Planned(one.letter_id, 1) for one in letters(0, messages, of=messages)]
    await store.create(redrive, items, act=act)


def _run(work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
        return runner.run(work)


def _meter(messages: int, server: int | None) -> Meter:
    """From here on it is measured: as in a process of `redrive serve` that is at work, also for the bare loops."""
    freeze_startup()
    return Meter(messages, server=server)


def _next(queue: sqlite3.Connection) -> Sequence[Any]:
    return [*queue.execute(_NEXT)]


def _remove(queue: sqlite3.Connection, rows: Sequence[Any]) -> None:
    queue.execute("DELETE FROM entry WHERE id <= ?", (rows[-1][0],))
    queue.commit()


def _make_room(queue: sqlite3.Connection) -> None:
    queue.execute("CREATE TABLE sent (letter_id TEXT, body BLOB)")


def _send(queue: sqlite3.Connection, entries: Sequence[tuple[str, bytes | None]]) -> None:
    queue.executemany("INSERT INTO sent VALUES (?, ?)", entries)
    queue.commit()


def _queue(path: str) -> str:
    return str(Path(path).with_suffix(".db-queue"))
