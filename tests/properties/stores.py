"""The stores, side by side and empty."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from redrive.core.ports.store import Store
from redrive.stores.memory import MemoryStore
from redrive.stores.mongo import MongoStore
from redrive.stores.sql import SqlStore
from redrive.testing.clock import ManualClock
from tests.servers import mongo, postgres


def make_empty_file(path: Path) -> None:
    """A file with the schema and nothing in it: made once, copied often."""

    async def create() -> None:
        store = SqlStore(path, clock=ManualClock())
        await store.stats()
        await store.aclose()

    asyncio.run(create())


@asynccontextmanager
async def both_stores(place: Path | str) -> AsyncIterator[Sequence[Store]]:
    """A store in memory, and one in a copy of an empty file or in a database that is emptied first."""
    with tempfile.TemporaryDirectory() as folder:
        store = _emptied(place, Path(folder))
        try:
            yield [MemoryStore(clock=ManualClock()), store]
        finally:
            await store.aclose()


def _emptied(place: Path | str, folder: Path) -> Store:
    if isinstance(place, Path):
        return SqlStore(shutil.copy(place, folder), clock=ManualClock())
    if place.startswith("mongodb://"):
        mongo.empty(place)
        return MongoStore(place, clock=ManualClock())
    postgres.empty(place)
    return SqlStore(place, clock=ManualClock())
