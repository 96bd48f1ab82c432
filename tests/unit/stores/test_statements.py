"""The statements that everything that is collected or redriven goes through."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, create_engine, event, select

from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.core.redrive import Planned, RedriveOutcome
from redrive.stores.sql import SqlStore, schema
from redrive.stores.sql.among import among, among_given
from redrive.stores.sql.bulk import fetch_rows, insert_rows
from redrive.stores.sql.tables import metadata, tombstone
from redrive.testing.clock import ManualClock
from redrive.testing.conformance.store.bench import AT, a_redrive, an_act, letter

ODD = ["plain", "", "ü", "quo'te\"", "back\\slash", "[1, 2]", "nul\x00", "lone\ud800", "\ufdd0began", "\U0001f600"]
COLUMNS = ("letter_id", "generation")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    engine = create_engine(f"sqlite:///{tmp_path / 'letters.db'}")
    with engine.begin() as opened:
        schema.migrate(opened)
        yield opened
    engine.dispose()


@contextmanager
def listening() -> Iterator[list[str]]:
    """Every statement that is run meanwhile."""
    said: list[str] = []

    def hear(_connection: Connection, _cursor: Any, statement: str, *_rest: Any) -> None:
        said.append(statement)

    event.listen(Engine, "before_cursor_execute", hear)
    yield said
    event.remove(Engine, "before_cursor_execute", hear)


def test_any_text_is_found_among_others(connection: Connection) -> None:
    insert_rows(connection, tombstone, COLUMNS, [(name, 1) for name in ODD])

    for wanted in ([name] for name in ODD):
        found = connection.execute(select(tombstone.c.letter_id).where(among(tombstone.c.letter_id, wanted)))
        assert [*found.scalars()] == wanted
    every = connection.execute(select(tombstone.c.letter_id).where(among(tombstone.c.letter_id, [*ODD, "other"])))
    assert {*every.scalars()} == {*ODD}


def test_a_question_that_is_asked_again_and_again_understands_any_text(connection: Connection) -> None:
    question = select(tombstone.c.letter_id).where(among_given(tombstone.c.letter_id, "letter_ids"))
    insert_rows(connection, tombstone, COLUMNS, [(name, 1) for name in ODD])

    assert {name for (name,) in fetch_rows(connection, question, letter_ids=[*ODD, "other"])} == {*ODD}
    assert fetch_rows(connection, question, letter_ids=["other"]) == []


def test_nothing_is_among_none(connection: Connection) -> None:
    insert_rows(connection, tombstone, COLUMNS, [("a", 1)])

    assert connection.execute(select(tombstone).where(among(tombstone.c.letter_id, []))).all() == []


def test_no_rows_are_no_statement(connection: Connection) -> None:
    with listening() as said:
        insert_rows(connection, tombstone, COLUMNS, [])

    assert said == []


async def test_an_index_leads_to_all_that_is_collected_or_redriven(tmp_path: Path) -> None:
    store = SqlStore(tmp_path / "letters.db", clock=ManualClock())
    await store.stats()
    success = RedriveOutcome("a", 1, succeeded=True, reported_at=AT, queue="orders", group="shop", message_id="1")
    with listening() as said:
        await store.collect([letter("a")], act=an_act("letters.collect"))
        await store.create(a_redrive("r1"), [Planned("a", 1)], act=an_act("letters.redrive"))
        await store.claim("r1", step=0, limit=1)
        await store.sent("r1", {"a": "1"}, at=AT)
        await store.collect([letter("a", generation=1)], [success])
    await store.aclose()

    asked = [one for one in dict.fromkeys(said) if not one.startswith("BEGIN")]
    with closing(sqlite3.connect(tmp_path / "letters.db")) as file, file:
        plans = [file.execute(f"EXPLAIN QUERY PLAN {one}", (None,) * one.count("?")).fetchall() for one in asked]
    scans = {f"SCAN {table}" for table in metadata.tables}
    assert len(asked) > 20
    assert [one for one, plan in zip(asked, plans, strict=True) if scans & {*map(_first_words, plan)}] == []


@pytest.mark.parametrize(
    ("asked", "index", "of_few"),
    [
        ({"queue": "orders"}, "letter_queue", "letter_state"),
        ({"error_type": "ValueError"}, "letter_error_type", "letter_state"),
        ({"fingerprint": "f"}, "letter_fingerprint", "letter_state"),
        ({"user_id": "u"}, "letter_user", "letter_user"),
        ({}, "letter_state", "letter_state"),
    ],
)
async def test_a_list_is_read_from_the_index_of_what_is_asked_for(
    tmp_path: Path, asked: dict[str, Any], index: str, of_few: str
) -> None:
    store = SqlStore(tmp_path / "letters.db", clock=ManualClock())
    await store.collect([letter("a")])
    many: list[str] = []
    few: list[str] = []
    with listening() as said:
        for states in (*((state,) for state in LetterState), (LetterState.OPEN, LetterState.PARKED)):
            await store.find(Query(**asked, states=states))
            kept = few if {*states} <= {LetterState.REDRIVING, LetterState.PARKED} else many
            kept += [one for one in said if "letter.seq <" in one]
            said.clear()
    await store.aclose()

    assert {*_indexes(tmp_path / "letters.db", many)} == {index}
    assert {*_indexes(tmp_path / "letters.db", few)} == {of_few}


def _indexes(path: Path, searches: Sequence[str]) -> Iterator[str]:
    """The index that each look at letters uses."""
    with closing(sqlite3.connect(path)) as file:
        plans = [file.execute(f"EXPLAIN QUERY PLAN {one}", (None,) * one.count("?")).fetchall() for one in searches]
    for step in (step[-1] for plan in plans for step in plan):
        if step.startswith("SEARCH letter "):
            yield step.partition("INDEX ")[2].partition(" ")[0]


def _first_words(step: tuple[Any, ...]) -> str:
    return " ".join(step[-1].split()[:2])
