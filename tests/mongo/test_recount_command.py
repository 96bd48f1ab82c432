import asyncio
import json
from pathlib import Path

import pytest

from redrive.cli import run
from redrive.stores.mongo import MongoStore
from redrive.stores.sql import SqlStore
from redrive.testing.clock import ManualClock
from redrive.testing.conformance.store.bench import letter
from tests.servers.mongo import client


def test_a_recount_says_what_it_has_mended(mongodb_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    async def begin() -> None:
        store = MongoStore(mongodb_url, clock=ManualClock())
        await store.collect([letter("a"), letter("b")])
        await store.aclose()

    asyncio.run(begin())
    with client(mongodb_url) as connected:
        connected.get_default_database()["letters"].delete_one({"letter_id": "a"})

    assert run(["store", "recount", "--store", mongodb_url]) == 0
    assert capsys.readouterr().out == "counted 1 letters, mended 2 numbers\n"
    assert run(["store", "recount", "--store", mongodb_url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"letters": 1, "mended": 0}


def test_a_store_in_sql_has_nothing_to_mend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def begin() -> None:
        store = SqlStore(tmp_path / "letters.db", clock=ManualClock())
        await store.stats()
        await store.aclose()

    asyncio.run(begin())

    assert run(["store", "recount", "--store", f"sqlite:///{tmp_path}/letters.db"]) == 0
    assert "nothing to mend" in capsys.readouterr().out
