import os
from collections.abc import AsyncIterator

import pytest

from redrive.stores.mongo import MongoStore
from redrive.testing.clock import ManualClock
from redrive.testing.conformance.store import StoreSuite, StoreUnderTest
from redrive.testing.conformance.store.bench import Bench
from tests.servers.plugin import GIVEN_MONGODB

# It looks at every document for each that it changes. tests/mongo/test_chunks.py does the same with fewer letters.
only_on_mongodb = pytest.mark.skipif(GIVEN_MONGODB not in os.environ, reason="FerretDB would take minutes")


@pytest.fixture
async def store_under_test(mongodb_url: str) -> AsyncIterator[StoreUnderTest]:
    clock = ManualClock()
    opened: list[MongoStore] = []

    async def reopen() -> MongoStore:
        opened.append(MongoStore(mongodb_url, clock=clock))
        return opened[-1]

    yield StoreUnderTest(store=await reopen(), reopen=reopen)
    for store in opened:
        await store.aclose()


class TestMongo(StoreSuite):
    @only_on_mongodb
    async def test_many_letters_are_discarded(self, bench: Bench) -> None:
        await super().test_many_letters_are_discarded(bench)

    @only_on_mongodb
    async def test_more_letters_than_one_transaction_takes_are_left_at_the_end(self, bench: Bench) -> None:
        await super().test_more_letters_than_one_transaction_takes_are_left_at_the_end(bench)
