import pytest

from redrive.stores.memory import MemoryStore
from redrive.testing.clock import ManualClock
from redrive.testing.conformance.store import StoreSuite, StoreUnderTest


@pytest.fixture
def store_under_test() -> StoreUnderTest:
    store = MemoryStore(clock=ManualClock())

    async def reopen() -> MemoryStore:
        return store

    return StoreUnderTest(store=store, reopen=reopen)


class TestMemory(StoreSuite):
    pass
