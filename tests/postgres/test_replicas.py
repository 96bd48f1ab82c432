"""Several processes on one store at the same time: nothing twice, nothing lost, every count true."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection
from sqlalchemy.util import await_only

from redrive.core.audit import AuditRecord
from redrive.core.life import LetterState
from redrive.core.ports.store import Store
from redrive.stores.sql import collecting
from redrive.testing.conformance.store.bench import a_redrive, an_act, letter
from tests.postgres.conftest import OpenStore
from tests.postgres.replica import LETTERS, NOTES, REPLICAS, SECONDS, SHARED
from tests.properties.recount import check_counts, rows_of

ROOT = Path(__file__).parents[2]


async def test_replicas_at_work_on_one_store_do_nothing_twice(postgres_url: str, open_store: OpenStore) -> None:
    store = open_store(postgres_url)
    await store.create(a_redrive(SHARED, total=0), [], act=an_act("letters.redrive"))
    did = await asyncio.to_thread(_work, postgres_url)

    assert sum(one["new"] for one in did) == LETTERS
    claimed = Counter((name, generation) for one in did for name, generation in one["claimed"])
    assert {*claimed.values()} == {1}
    assert {name for name, _ in claimed} == {row.letter_id for row in await rows_of(store)}
    await check_counts(store)
    rows = await rows_of(store)
    assert {row.life.state for row in rows} <= {LetterState.OPEN, LetterState.RESOLVED}
    assert all(row.life.generation == max(number for name, number in claimed if name == row.letter_id) for row in rows)
    turns = Counter(second for one in did for second in one["turns"])
    assert {*turns.values()} == {1}
    assert SECONDS - 1 in turns

    assert await store.verify() is None
    records = await _records(store)
    assert [record.seq for record in records] == [*range(len(records), 0, -1)]
    noted = 2 * NOTES * REPLICAS  # the operation and its letter
    assert len(records) == noted + claimed.total() + REPLICAS + 1


async def test_who_follows_the_news_never_passes_a_letter_that_is_not_committed_yet(
    postgres_url: str, open_store: OpenStore
) -> None:
    first, second, reader = (open_store(postgres_url) for _ in range(3))
    start = (await reader.news(after=None)).after
    begun, go_on = asyncio.Event(), asyncio.Event()

    def slow(connection: Connection) -> None:
        collecting.collect(connection, [letter("early")], [], act=None)
        begun.set()
        await_only(go_on.wait())

    writing = asyncio.create_task(first._database.write(slow))  # noqa: SLF001 - numbered, and not committed
    await begun.wait()
    hurrying = asyncio.create_task(second.collect([letter("late")]))
    meanwhile = await reader.news(after=start)
    go_on.set()
    await asyncio.gather(writing, hurrying)
    then = await reader.news(after=meanwhile.after)

    assert [row.letter_id for row in (*meanwhile.rows, *then.rows)] == ["early", "late"]


def _work(url: str) -> list[dict[str, Any]]:
    with _started(url) as replicas:
        for replica in replicas:
            assert _pipe(replica.stdout).readline() == "ready\n"
        for replica in replicas:
            _pipe(replica.stdin).write("go\n")
            _pipe(replica.stdin).flush()
        return [json.loads(_pipe(replica.stdout).readline()) for replica in replicas]


@contextmanager
def _started(url: str) -> Iterator[list[subprocess.Popen[str]]]:
    pipe = subprocess.PIPE
    replicas = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.postgres.replica", url, str(number)],
            cwd=ROOT,
            stdin=pipe,
            stdout=pipe,
            text=True,
        )
        for number in range(REPLICAS)
    ]
    try:
        yield replicas
    finally:
        for replica in replicas:
            replica.communicate()


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


async def _records(store: Store) -> list[AuditRecord]:
    found: list[AuditRecord] = []
    after: str | None = None
    while True:
        page = await store.records(limit=1000, after=after)
        found.extend(page.rows)
        after = page.after
        if after is None:
            return found
