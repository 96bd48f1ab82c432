import gc
import warnings
from collections.abc import AsyncIterator, Callable

import pytest

from redrive.stores.mongo import MongoStore
from redrive.testing.clock import ManualClock

OpenStore = Callable[[str], MongoStore]


@pytest.fixture
async def open_store() -> AsyncIterator[OpenStore]:
    """Stores at a URL, closed at the end."""
    opened: list[MongoStore] = []

    def store_at(url: str) -> MongoStore:
        opened.append(MongoStore(url, clock=ManualClock()))
        return opened[-1]

    yield store_at
    for store in opened:
        await store.aclose()
    with warnings.catch_warnings():
        # The driver forgets a socket that was still connecting when it was closed: let that be found here and now.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
