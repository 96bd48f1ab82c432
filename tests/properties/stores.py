"""The stores, side by side and empty."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from redrive.core.ports.store import Store
from redrive.stores.memory import MemoryStore
from redrive.stores.sql import SqlStore
from redrive.testing.clock import ManualClock
from tests.servers.postgres import empty


def make_empty_file(path: Path) -> None:
    """A file with the schema and nothing in it: made once, copied often."""

    async def create() -> None:
        store = SqlStore(path, clock=ManualClock())
        await store.stats()
        await store.aclose()

    asyncio.run(create())


@asynccontextmanager
async def both_stores(place: Path | str) -> AsyncIterator[Sequence[Store]]:
    """A store in memory, and one in a copy of an empty file or in a PostgreSQL that is emptied first."""
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(place, str):
            empty(place)
        store = SqlStore(place if isinstance(place, str) else shutil.copy(place, folder), clock=ManualClock())
        try:
            yield [MemoryStore(clock=ManualClock()), store]
        finally:
            await store.aclose()
