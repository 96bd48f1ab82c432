import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from redrive.stores.sql import SqlStore
from redrive.testing.clock import ManualClock
from redrive.testing.conformance.store import StoreSuite, StoreUnderTest


@pytest.fixture(scope="module")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the schema and nothing in it: made once, copied for each scenario."""
    path = tmp_path_factory.mktemp("empty") / "letters.db"

    async def create() -> None:
        store = SqlStore(path, clock=ManualClock())
        await store.stats()
        await store.aclose()

    asyncio.run(create())
    return path


@pytest.fixture
async def store_under_test(empty_file: Path, tmp_path: Path) -> AsyncIterator[StoreUnderTest]:
    clock = ManualClock()
    opened: list[SqlStore] = []
    shutil.copy(empty_file, tmp_path)

    async def reopen() -> SqlStore:
        opened.append(SqlStore(tmp_path / "letters.db", clock=clock))
        return opened[-1]

    yield StoreUnderTest(store=await reopen(), reopen=reopen)
    for store in opened:
        await store.aclose()


class TestSqlite(StoreSuite):
    pass
