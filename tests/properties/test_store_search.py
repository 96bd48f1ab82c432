"""Every store finds what `Query.matches` says, counts what is there, and does so after any history."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.core.letter import DeadLetter
from redrive.core.life import LetterState
from redrive.core.ports.store import Store
from redrive.core.query import Query
from redrive.core.reason import Reason
from redrive.stores.mongo import searching as mongo_searching
from redrive.stores.sql import dated, searching
from redrive.stores.sql import texts as sql_texts
from redrive.testing.conformance.store.bench import AT, an_act, an_outcome, letter
from tests.properties.recount import DIMENSIONS
from tests.properties.stores import both_stores
from tests.unit.core.letters import texts

Step = Callable[[Store], Coroutine[Any, Any, Any]]

NAMES = st.sampled_from(["a", "b", "c", "d", "\ud800", "x\x00y"])
few = st.sampled_from(["one", "Two", "\u00c4ther", "ss", "a\x00", "\udc80"]) | texts
maybe = st.none() | few
reasons = st.sampled_from([Reason.INVALID, Reason.REJECTED])
instants = st.integers(-3, 3).map(lambda hours: AT + timedelta(hours=hours))
payloads = st.sampled_from([None, b"", b'{"name": "\xc3\x84nne"}', b"\xff\x00one two", b"ONE"])


@st.composite
def letters(draw: st.DrawFn) -> DeadLetter:
    return replace(
        letter(draw(NAMES), payload=draw(payloads), generation=draw(st.integers(0, 2)), fingerprint=draw(few)),
        queue=draw(few),
        error_type=draw(few),
        error_code=draw(maybe),
        error_message=draw(few),
        reason=draw(reasons),
        user_id=draw(maybe),
        tenant_id=draw(maybe),
        failed_at=draw(instants),
        dlq_entry_id=draw(st.sampled_from(["", "1-0", "2-0"])),
    )


def _collect(batch: list[DeadLetter], told: list[tuple[str, int, bool]]) -> Step:
    outcomes = [an_outcome(name, generation, succeeded=succeeded) for name, generation, succeeded in told]
    return lambda store: store.collect(batch, outcomes)


def _discard(name: str, version: int) -> Step:
    return lambda store: store.discard({name: version}, act=an_act("letters.discard", operation_id="o"))


def _purge(limit: int) -> Step:
    act = an_act("letters.purge", operation_id="p")
    return lambda store: store.purge(Query(reason=Reason.INVALID), before=AT, limit=limit, act=act)


def _tend(_: int) -> Step:
    async def tend(store: Store) -> None:
        await store.tend()

    return tend


told = st.lists(st.tuples(NAMES, st.integers(1, 2), st.booleans()), max_size=2)
steps = st.one_of(
    st.builds(_collect, st.lists(letters(), max_size=4), told),
    st.builds(_collect, st.lists(letters(), max_size=4), told),
    st.builds(_discard, NAMES, st.integers(1, 3)),
    st.builds(_purge, st.integers(0, 2)),
    st.builds(_tend, st.just(0)),
)
queries = st.builds(
    Query,
    states=st.lists(st.sampled_from(LetterState), max_size=3).map(tuple),
    reason=st.none() | reasons,
    queue=maybe,
    error_type=st.none() | st.none() | few,
    fingerprint=st.none() | st.none() | few,
    user_id=st.none() | st.none() | few,
    dlq_entry_id=st.none() | st.none() | st.sampled_from(["", "1-0"]),
    from_at=st.none() | instants,
    to_at=st.none() | instants,
    text=st.none() | few | st.sampled_from(["", "n", "\u00e4nn", '"name"', "one two", "NO"]),
)


async def found(store: Store, query: Query) -> list[Any]:
    rows: list[Any] = []
    after: str | None = None
    while True:
        page = await store.find(query, limit=2, after=after)
        rows.extend(page.rows)
        after = page.after
        if after is None:
            return rows


async def seen(store: Store, asked: list[Query]) -> list[Any]:
    """Everything that can be asked of a store."""
    answers: list[Any] = [await store.stats(), await store.stats(states=asked[0].states)]
    since, until = AT - timedelta(hours=2), AT + timedelta(hours=2)
    answers.append([await store.trends(since=since, until=until, by=by) for by in DIMENSIONS])
    answers.append(await store.news(after="0", limit=1000))
    incidents = (await store.incidents(state=None)).rows
    answers.append({row.incident_id: await store.incident(row.incident_id) for row in incidents})
    for query in asked:
        answers.append(await found(store, query))
        answers.append([*await store.select(query, limit=3)])
        answers.append(await store.count(query, cap=2) if query.text else await store.count(query))
    return answers


async def compare(place: Path | str, history: list[Step], asked: list[Query]) -> None:
    async with both_stores(place) as (memory, sql):
        for step in history:
            assert await step(sql) == await step(memory)
        assert await seen(sql, asked) == await seen(memory, asked)
        assert await sql.verify() is None


async def compare_pages(place: Path | str, batch: list[DeadLetter], query: Query) -> None:
    async with both_stores(place) as (memory, sql):
        for store in (memory, sql):
            await store.collect(batch)
        assert await found(sql, query) == await found(memory, query)


histories, questions = st.lists(steps, max_size=6), st.lists(queries, min_size=1, max_size=5)
# Windows so small that every search crosses some, and all the time in the world; or none at all.
patiently = patch.multiple(searching, FIRST_WINDOW=1, LARGEST_WINDOW=2, PATIENCE=3600)
impatiently = patch.multiple(searching, FIRST_WINDOW=1, PATIENCE=-1)
patiently_in_mongodb = patch.multiple(mongo_searching, FIRST_WINDOW=1, LARGEST_WINDOW=2, PATIENCE=3600)
few_enough = st.sampled_from([1, 3, 1000])  # from how many letters on those of a text, or of a time, are many
impatiently_in_mongodb = patch.multiple(mongo_searching, FIRST_WINDOW=1, PATIENCE=-1)


@settings(max_examples=60)
@given(histories, questions, few_enough)
def test_every_store_sees_what_the_memory_store_sees(
    empty_file: Path, history: list[Step], asked: list[Query], few: int
) -> None:
    with patiently, patch.object(sql_texts, "FEW", few), patch.object(dated, "FEW", few):
        asyncio.run(compare(empty_file, history, asked))


@settings(max_examples=20)
@given(st.lists(letters(), max_size=8), queries, few_enough)
def test_impatient_pages_miss_nothing(empty_file: Path, batch: list[DeadLetter], query: Query, few: int) -> None:
    with impatiently, patch.object(sql_texts, "FEW", few), patch.object(dated, "FEW", few):
        asyncio.run(compare_pages(empty_file, batch, query))


@settings(max_examples=20)
@given(histories, questions, few_enough)
def test_postgres_sees_what_the_memory_store_sees(
    shared_postgres: str, history: list[Step], asked: list[Query], few: int
) -> None:
    with patiently, patch.object(sql_texts, "FEW", few), patch.object(dated, "FEW", few):
        asyncio.run(compare(shared_postgres, history, asked))


@settings(max_examples=10)
@given(st.lists(letters(), max_size=8), queries, few_enough)
def test_impatient_pages_of_postgres_miss_nothing(
    shared_postgres: str, batch: list[DeadLetter], query: Query, few: int
) -> None:
    with impatiently, patch.object(sql_texts, "FEW", few), patch.object(dated, "FEW", few):
        asyncio.run(compare_pages(shared_postgres, batch, query))


@settings(max_examples=10)
@given(histories, questions)
def test_mongodb_sees_what_the_memory_store_sees(shared_mongodb: str, history: list[Step], asked: list[Query]) -> None:
    with patiently_in_mongodb:
        asyncio.run(compare(shared_mongodb, history, asked))


@settings(max_examples=5)
@given(st.lists(letters(), max_size=8), queries)
def test_impatient_pages_of_mongodb_miss_nothing(shared_mongodb: str, batch: list[DeadLetter], query: Query) -> None:
    with impatiently_in_mongodb:
        asyncio.run(compare_pages(shared_mongodb, batch, query))
