from collections.abc import AsyncIterator, Callable

import pytest

from redrive.stores.sql import SqlStore
from redrive.testing.clock import ManualClock

OpenStore = Callable[[str], SqlStore]


@pytest.fixture
async def open_store() -> AsyncIterator[OpenStore]:
    """Stores at a URL, closed at the end."""
    opened: list[SqlStore] = []

    def store_at(url: str) -> SqlStore:
        opened.append(SqlStore(url, clock=ManualClock()))
        return opened[-1]

    yield store_at
    for store in opened:
        await store.aclose()
