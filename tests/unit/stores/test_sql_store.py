import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from redrive.core.attempt import RowTrail
from redrive.core.errors import StoreError, StoreUnavailable
from redrive.core.query import Query
from redrive.core.redrive import ItemStatus, Planned, RedriveState
from redrive.core.wire import from_json, to_json
from redrive.stores.sql import SqlStore, redrives, sqlite
from redrive.testing.clock import ManualClock
from redrive.testing.conformance.store.bench import AT, a_redrive, an_act, letter


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    opened = SqlStore(tmp_path / "letters.db", clock=ManualClock())
    yield opened
    await opened.aclose()


def test_a_file_that_is_not_there_is_created_at_the_first_call(tmp_path: Path) -> None:
    path = tmp_path / "letters.db"
    store = SqlStore(path, clock=ManualClock())
    assert not path.exists()

    async def look() -> int:
        total = (await store.stats()).total
        await store.aclose()
        return total

    assert asyncio.run(look()) == 0
    assert path.exists()


async def test_many_openers_of_a_new_file_create_it_once(tmp_path: Path) -> None:
    stores = [SqlStore(tmp_path / "letters.db", clock=ManualClock()) for _ in range(4)]
    await asyncio.gather(*(store.collect([letter(f"l{number}")]) for number, store in enumerate(stores)))

    assert (await stores[0].stats()).total == 4
    for store in stores:
        await store.aclose()


async def test_a_letter_goes_again_though_the_end_of_its_redrive_was_cut_short(store: SqlStore) -> None:
    await store.collect([letter("a")])
    await store.create(a_redrive("r1"), [Planned("a", 1)], act=an_act("letters.redrive"))
    await store.claim("r1", step=0, limit=1)
    database, act = store._database, an_act("redrives.cancel")  # noqa: SLF001 - killed after the first transaction
    await database.write(redrives.mark, "r1", RedriveState.CANCELLED, why="", act=act, accepted=None)
    assert (await store.progress("r1")).count(ItemStatus.CLAIMED) == 1

    await store.create(a_redrive("r2", again=True), [Planned("a", 2)], act=an_act("letters.redrive"))
    assert [one.generation for one in await store.claim("r2", step=0, limit=1)] == [2]
    assert (await store.progress("r1")).count(ItemStatus.UNCONFIRMED) == 1


async def test_a_missing_folder_is_unavailable(tmp_path: Path) -> None:
    store = SqlStore(tmp_path / "nowhere" / "letters.db", clock=ManualClock())

    with pytest.raises(StoreUnavailable, match="does its folder exist"):
        await store.stats()
    await store.aclose()


async def test_a_file_that_is_something_else_is_an_error_for_good(tmp_path: Path) -> None:
    path = tmp_path / "letters.db"
    path.write_bytes(b"not a database at all, but long enough to be looked at" * 20)
    store = SqlStore(path, clock=ManualClock())

    with pytest.raises(StoreError, match="not an SQLite file") as caught:
        await store.stats()
    assert not isinstance(caught.value, StoreUnavailable)
    await store.aclose()


async def test_a_locked_file_is_unavailable_and_then_works_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.01)
    path = tmp_path / "letters.db"
    store = SqlStore(path, clock=ManualClock())
    await store.stats()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreUnavailable, match="locked"):
        await store.collect([letter("a")])
    assert (await store.stats()).total == 0
    other.execute("ROLLBACK")
    other.close()
    assert (await store.collect([letter("a")])).new == 1
    await store.aclose()


async def test_a_full_disk_is_unavailable_and_nothing_is_half_written(store: SqlStore, tmp_path: Path) -> None:
    await store.collect([letter("a")])
    pages = tamper(tmp_path / "letters.db", "PRAGMA page_count")

    def fill_up(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        connection.cursor().execute(f"PRAGMA max_page_count = {pages + 1}")

    small = SqlStore(tmp_path / "letters.db", clock=ManualClock())
    database = small._database  # noqa: SLF001 - a limit that only a connection has
    assert isinstance(database, sqlite.SqliteDatabase)
    event.listen(database._writing, "connect", fill_up)  # noqa: SLF001

    with pytest.raises(StoreUnavailable, match="full"):
        await small.collect([letter(f"l{number}", payload=b"x" * 10_000) for number in range(50)])
    assert (await small.stats()).total == 1
    assert [row.letter_id for row in (await small.find(Query())).rows] == ["a"]
    await small.aclose()


async def test_a_closed_store_says_so(store: SqlStore) -> None:
    await store.aclose()

    with pytest.raises(StoreError, match="closed"):
        await store.stats()


async def test_a_cancelled_call_leaves_the_store_usable(store: SqlStore) -> None:
    await store.stats()
    call = asyncio.create_task(store.collect([letter(f"l{number}") for number in range(500)]))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    await store.collect([letter("a")])
    assert (await store.stats()).total in (1, 501)


def test_a_process_that_forgets_to_close_the_store_still_ends(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from redrive.stores.sql import SqlStore\n"
        "from redrive.testing.clock import ManualClock\n"
        "store = SqlStore(sys.argv[1], clock=ManualClock())\n"
        "asyncio.run(store.stats())\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, tmp_path / "letters.db"], timeout=60, check=False)

    assert ended.returncode == 0


INSERTED = """
    INSERT INTO audit SELECT 0, at, who, verb, 'x', letter_id, selection, count, before_sha256, after_sha256, detail,
    previous_hash, hash FROM audit WHERE seq = 3
"""


def tamper(path: Path, statement: str) -> Any:
    connection = sqlite3.connect(path)
    answer = connection.execute(statement).fetchone()
    connection.commit()
    connection.close()
    return answer and answer[0]


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE audit SET who = 'bob' WHERE seq = 3", 3),
        ("UPDATE audit SET detail = NULL WHERE seq = 4", 4),
        ("DELETE FROM audit WHERE seq = 1", 2),
        ("DELETE FROM audit WHERE seq IN (3, 4)", 5),
        (INSERTED, 0),
        ("UPDATE audit SET seq = 99 WHERE seq = 2", 3),
    ],
    ids=["changed", "detail removed", "first removed", "some removed", "inserted", "moved"],
)
async def test_an_audit_that_was_tampered_with_is_found_out(
    store: SqlStore, tmp_path: Path, statement: str, found: int
) -> None:
    await store.collect([letter("a")])
    for number in range(3):
        await store.note("a", str(number), act=an_act("letters.note"))
    assert await store.verify() is None
    tamper(tmp_path / "letters.db", statement)
    broken = await store.verify()

    assert broken is not None
    assert broken.seq == found


async def test_a_claim_takes_at_most_a_thousand_letters(store: SqlStore) -> None:
    names = [f"l{number:04}" for number in range(1200)]
    await store.collect([letter(name) for name in names])
    await store.create(a_redrive(total=1200), [Planned(name, 1) for name in names], act=an_act("letters.redrive"))
    first = await store.claim("r1", step=0, limit=5000)
    await store.sent("r1", {one.letter_id: "m" for one in first}, at=AT)
    second = await store.claim("r1", step=0, limit=5000)

    assert [one.letter_id for one in (*first, *second)] == names
    assert (len(first), len(second)) == (1000, 200)


@pytest.mark.parametrize("text", ["no", "für \U0001f600", "\x00", "\ud800 lone"], ids=ascii)
async def test_a_letter_that_was_read_keeps_its_attempts(store: SqlStore, text: str) -> None:
    told = letter("a")
    told = replace(told, attempts=tuple(attempt.told(text) for attempt in told.attempts))
    await store.collect(
        [from_json(to_json(told)), replace(from_json(to_json(letter("b"))), attempts=RowTrail(["no row"]))]
    )

    assert (await store.get("a")).letter == told
    assert (await store.get("b")).letter == letter("b", attempts=())


async def test_letters_that_lack_what_others_have_are_kept_beside_them(store: SqlStore) -> None:
    bare = replace(letter("a"), key=None, stack=None, user_id=None, error_code=None)
    full = replace(letter("b"), key=b"", stack="at shop.py", user_id="u1", error_code="E1")
    await store.collect([bare])
    await store.collect([full])
    await store.collect([replace(bare, letter_id="c"), replace(full, letter_id="d")])

    kept = await store.get_many(["a", "b", "c", "d"])
    assert [(one.letter.key, one.letter.stack, one.letter.user_id, one.letter.error_code) for one in kept] == [
        (None, None, None, None),
        (b"", "at shop.py", "u1", "E1"),
    ] * 2
