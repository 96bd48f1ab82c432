from collections.abc import Sequence
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import column, create_engine, insert, inspect, table, text

from redrive.core.errors import StoreError
from redrive.core.letter import DeadLetter
from redrive.core.life import LetterState, Life
from redrive.core.query import Query
from redrive.core.redrive import ItemStatus
from redrive.core.stored import Dimension
from redrive.stores.sql import SqlStore, schema
from redrive.stores.sql.rows import cold_values, hot_values
from redrive.stores.sql.tables import counter, letter_body, metadata
from redrive.stores.sql.tables import letter as letter_table
from redrive.stores.sql.types import Instant
from redrive.testing.clock import ManualClock
from redrive.testing.conformance.store.bench import AT, letter

DIMENSIONS: tuple[Dimension, ...] = ("reason", "queue", "error_type", "error_code")
OLD = [letter("a", error_message="\ud800 Old"), letter("b", payload=b"\xff\x00 Payload"), letter("c", payload=None)]


def fill(path: Path, letters: Sequence[DeadLetter], *, revision: str) -> None:
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        schema.migrate(connection, to=revision)
        then = {column["name"] for column in inspect(connection).get_columns(letter_table.name)}
        for seq, told in enumerate(letters, 1):
            values = hot_values(told, Life(LetterState.OPEN, told.generation)) | {"seq": seq, "note": ""}
            known = {name: value for name, value in values.items() if name in then}
            connection.execute(insert(letter_table).values(known))
            connection.execute(insert(letter_body).values(cold_values(told) | {"seq": seq}))
        connection.execute(insert(counter).values(name="letter", last=len(letters)))
    engine.dispose()


async def test_a_file_of_the_first_revision_comes_forward_with_its_letters(tmp_path: Path) -> None:
    path = tmp_path / "letters.db"
    fill(path, OLD, revision="0001")
    store = SqlStore(path, clock=ManualClock())
    try:
        assert [(await store.get(told.letter_id)).letter for told in OLD] == OLD
        assert [row.letter_id for row in (await store.find(Query(text="payload"))).rows] == ["b"]
        while await store.tend():
            pass
        assert [row.letter_id for row in (await store.find(Query(text="? old"))).rows] == ["a"]
        assert (await store.collect([letter("d")])).new == 1
    finally:
        await store.aclose()


async def test_deaths_from_before_they_were_remembered_are_not_counted_again(tmp_path: Path) -> None:
    path = tmp_path / "letters.db"
    attempts = tuple(letter("a", generation=generation).attempts[0] for generation in (0, 2, 3))
    relapsed = letter("a", generation=3, attempts=attempts)
    fill(path, [relapsed, letter("b", generation=1, attempts=())], revision="0002")
    store = SqlStore(path, clock=ManualClock())
    try:
        for generation in (0, 1, 2, 3, 0, 1):
            await store.collect([letter("a", generation=generation)])
        hours = await store.trends(since=AT.replace(hour=0), by="reason")
        assert [number for _, hour in hours for number in hour.values()] == [1]
    finally:
        await store.aclose()


async def test_deaths_that_were_counted_by_reason_are_counted_by_every_dimension(tmp_path: Path) -> None:
    path = tmp_path / "letters.db"
    shown = [letter("a", error_code="no_card"), letter("b", error_type="a\x00"), letter("c", queue="mail")]
    fill(path, shown, revision="0003")
    engine = create_engine(f"sqlite:///{path}")
    counted = {("orders", "rejected"): 3, ("orders", "invalid"): 1, ("mail", "rejected"): 1}
    hour = AT.replace(minute=0)
    with engine.begin() as connection:
        arrivals = table("arrivals", column("hour", Instant()), column("queue"), column("reason"), column("n"))
        rows = [{"hour": hour, "queue": queue, "reason": reason, "n": n} for (queue, reason), n in counted.items()]
        connection.execute(insert(arrivals), rows)
    engine.dispose()
    store = SqlStore(path, clock=ManualClock())
    try:
        counts = [(await store.trends(since=hour, by=by))[0] for by in DIMENSIONS]
        assert counts == [
            (hour, {"rejected": 4, "invalid": 1}),
            (hour, {"orders": 4, "mail": 1}),
            (hour, {"ValueError": 2, "a\x00": 1, "unknown": 2}),
            (hour, {"no_card": 1, "": 4}),
        ]
        names = [row.letter_id for row in (await store.news(after="0")).rows]
        assert names == ["a", "b", "c"]
    finally:
        await store.aclose()


async def test_letters_from_before_it_was_noted_which_are_settled_are_found_by_their_state(tmp_path: Path) -> None:
    path = tmp_path / "letters.db"
    fill(path, [letter(state.value) for state in LetterState], revision="0006")
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        connection.execute(text("UPDATE letter SET state = letter_id"))
    engine.dispose()
    store = SqlStore(path, clock=ManualClock())
    try:
        for states in ((state,) for state in LetterState):
            (row,) = (await store.find(Query(queue="orders", states=states))).rows
            assert row.life.state is states[0]
        every = await store.find(Query(queue="orders"))
        assert {row.life.state for row in every.rows} == {*LetterState}
    finally:
        await store.aclose()


_ITEM = """
    INSERT INTO redrive_item (redrive_id, letter_id, step, place, version, status, generation, fingerprint, message_id,
    sent_at, app_version) VALUES ('r1', :letter_id, :step, :place, 1, :status, :generation, 'f1', '', NULL, '')
"""
_REDRIVE = """
    INSERT INTO redrive (seq, redrive_id, operation_id, state, why, accepted, created_at, "by", selection, total, "to",
    confirm, report_within, over_cap, again, owner)
    VALUES (1, 'r1', 'o1', 'running', '', 0, 0, 'me', 'all', 4, 'lane', 'reported', 300, 0, 0, '')
"""


async def test_a_redrive_from_before_its_items_had_numbers_goes_on_in_turn(tmp_path: Path) -> None:
    path = tmp_path / "letters.db"
    fill(path, [letter(name) for name in ("a", "b", "c", "d")], revision="0009")
    engine = create_engine(f"sqlite:///{path}")
    turns = [("d", "claimed", 1), ("c", "planned", None), ("b", "planned", None), ("a", "sent", 1)]
    with engine.begin() as connection:
        connection.execute(text(_REDRIVE))
        for place, (name, status, generation) in enumerate(turns):
            values = {"letter_id": name, "step": 0, "place": place, "status": status, "generation": generation}
            connection.execute(text(_ITEM), values)
    engine.dispose()
    store = SqlStore(path, clock=ManualClock())
    try:
        counted = {ItemStatus.PLANNED: 2, ItemStatus.CLAIMED: 1, ItemStatus.SENT: 1}
        assert (await store.progress("r1")).steps == (counted,)
        claimed = await store.claim("r1", step=0, limit=10)
        assert [one.letter_id for one in claimed] == ["d", "c", "b"]
        assert (await store.progress("r1")).steps == ({ItemStatus.CLAIMED: 3, ItemStatus.SENT: 1},)
    finally:
        await store.aclose()


def test_the_migrations_lead_to_the_tables_that_the_code_knows(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'letters.db'}")
    with engine.begin() as connection:
        schema.migrate(connection)
        schema.migrate(connection)
        options = {"include_object": lambda _object, name, *_: not name.startswith("letter_index")}
        context = MigrationContext.configure(connection, opts=options)

        assert compare_metadata(context, metadata) == []
        assert schema.is_current(connection)
    engine.dispose()


def test_the_code_knows_its_last_migration() -> None:
    folder = Path(schema.__file__).parent / "migrations"

    assert ScriptDirectory(str(folder)).get_current_head() == schema.HEAD


async def test_a_file_from_a_later_version_is_refused_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "letters.db"
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        schema.migrate(connection)
        connection.execute(text("UPDATE alembic_version SET version_num = '0999'"))
    engine.dispose()
    store = SqlStore(path, clock=ManualClock())

    with pytest.raises(StoreError, match=r"schema 0999.*newer Redrive"):
        await store.stats()
    await store.aclose()
