from collections.abc import AsyncIterator

import pytest

from redrive.stores.sql import SqlStore
from redrive.testing.clock import ManualClock
from redrive.testing.conformance.store import StoreSuite, StoreUnderTest


@pytest.fixture
async def store_under_test(postgres_url: str) -> AsyncIterator[StoreUnderTest]:
    clock = ManualClock()
    opened: list[SqlStore] = []

    async def reopen() -> SqlStore:
        opened.append(SqlStore(postgres_url, clock=clock))
        return opened[-1]

    yield StoreUnderTest(store=await reopen(), reopen=reopen)
    for store in opened:
        await store.aclose()


class TestPostgres(StoreSuite):
    pass
