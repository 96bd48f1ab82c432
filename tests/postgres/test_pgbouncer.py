"""A store behind a pooler that gives every transaction another connection."""

import asyncio
from collections.abc import Iterator

import pytest

from redrive.core.errors import StoreUnavailable
from redrive.stores.sql import SqlStore
from redrive.testing.conformance.store.bench import an_act, letter
from tests.postgres.conftest import OpenStore
from tests.properties.recount import check_counts
from tests.servers.pgbouncer import PgBouncer


@pytest.fixture
def pooled_url(postgres_url: str) -> Iterator[str]:
    with PgBouncer(postgres_url) as pooler:
        yield pooler.url


async def work(store: SqlStore, number: int) -> None:
    for place in range(4):
        name = f"l{number}-{place}"
        await store.collect([letter(name)])
        await store.note(name, "look", act=an_act("letters.note"))
        assert (await store.get(name)).note == "look"


async def test_without_prepared_statements_stores_share_the_connections_of_a_pooler(
    pooled_url: str, open_store: OpenStore
) -> None:
    stores = [open_store(f"{pooled_url}?prepared_statement_cache_size=0") for _ in range(4)]
    await asyncio.gather(*(work(store, number) for number, store in enumerate(stores)))

    assert (await stores[0].stats()).total == 16
    assert await stores[0].verify() is None
    await check_counts(stores[0])


async def test_with_them_the_store_says_what_the_url_needs(pooled_url: str, open_store: OpenStore) -> None:
    stores = [open_store(pooled_url) for _ in range(4)]
    ended = await asyncio.gather(*(work(store, number) for number, store in enumerate(stores)), return_exceptions=True)
    problems = [one for one in ended if one is not None]

    assert all(isinstance(one, StoreUnavailable) for one in problems), problems
    assert all("prepared_statement_cache_size=0" in str(one) for one in problems), problems
