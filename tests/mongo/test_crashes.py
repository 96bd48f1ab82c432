"""Whole or not at all: whatever dies between two commands, the server or one of those who write."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

import pytest

from redrive.core.audit import AuditRecord
from redrive.core.errors import StoreUnavailable
from redrive.core.letter import DeadLetter
from redrive.stores.mongo import MongoStore
from redrive.testing.clock import ManualClock
from redrive.testing.conformance.store.bench import AT, an_act, letter
from tests.mongo import victim
from tests.properties.recount import check_counts, check_deaths, rows_of
from tests.servers.mongo import MongoServer, client


async def seen(store: MongoStore) -> dict[str, object]:
    """Everything that a scene may change."""
    return {
        "letters": await store.get_many([row.letter_id for row in await rows_of(store)]),
        "stats": await store.stats(),
        "incidents": (await store.incidents(state=None)).rows,
        "progress": await store.progress("r1"),
        "audit": [_said(one) for one in (await store.records(limit=100)).rows],
        "news": (await store.news(after="0")).after,
    }


def _said(record: AuditRecord) -> tuple[object, ...]:
    return record.seq, record.verb, record.letter_id, record.count, record.detail, record.hash


@contextmanager
def snapshot(url: str) -> Iterator[Callable[[], None]]:
    """How to put everything back as it is now."""
    with client(url) as connected:
        database = connected.get_default_database()
        kept = {name: [*database[name].find()] for name in database.list_collection_names()}

        def restore() -> None:
            for name, documents in kept.items():
                database[name].delete_many({})
                if documents:
                    database[name].insert_many(documents)

        yield restore


def left_over(url: str) -> int:
    """What was written down and is still there, and what the server refused."""
    with client(url) as connected:
        database = connected.get_default_database()
        return sum(database[f"letters.{part}"].count_documents({}) for part in ("pages", "refused"))


async def states_of(url: str, scene: str) -> Sequence[dict[str, object]]:
    """What is there before a scene, and after each of its calls."""
    store = MongoStore(url, clock=ManualClock())
    states = [await seen(store)]
    written = store._database.write  # noqa: SLF001 - looks over its shoulder

    async def watched(*args: object, **kwargs: object) -> object:
        answer: object = await written(*args, **kwargs)  # type: ignore[arg-type]
        states.append(await seen(store))
        await check_counts(store)
        assert await store.verify() is None
        return answer

    store._database.write = watched  # type: ignore[method-assign,assignment]  # noqa: SLF001
    await victim.SCENES[scene](store)
    await store.aclose()
    return states


async def prepare(url: str) -> None:
    store = MongoStore(url, clock=ManualClock())
    await victim.prepare(store)
    await store.aclose()


async def look(url: str) -> dict[str, object]:
    """What is there once somebody else has written: they finish what was left undone."""
    store = MongoStore(url, clock=ManualClock())
    await store.take("r1", owner="nobody", now=AT, until=AT)
    found = await seen(store)
    await store.aclose()
    return found


@pytest.mark.parametrize("scene", [*victim.SCENES])
def test_a_writer_killed_at_any_command_has_changed_all_or_nothing(mongodb_url: str, scene: str) -> None:
    asyncio.run(prepare(mongodb_url))
    with snapshot(mongodb_url) as restore:
        allowed = asyncio.run(states_of(mongodb_url, scene))
        restore()
        reached = set()
        for at in count(1):
            survived = victim.survives(mongodb_url, scene, at=at)
            found = asyncio.run(look(mongodb_url))
            assert found in allowed, f"killed at {at}"
            assert left_over(mongodb_url) == 0
            reached.add(allowed.index(found))
            if survived:
                break
            if found != allowed[0]:
                restore()
    assert {0, len(allowed) - 1} <= reached
    assert at > 10


def test_a_careless_writer_is_found_out(mongodb_url: str) -> None:
    asyncio.run(prepare(mongodb_url))
    with snapshot(mongodb_url) as restore:
        allowed = asyncio.run(states_of(mongodb_url, "purge"))
        restore()
        for at in count(1):
            assert not victim.survives(mongodb_url, "purge", at=at, careless=True), "nothing was found out"
            if asyncio.run(look(mongodb_url)) not in allowed:
                break


async def test_a_server_killed_again_and_again_loses_nothing_it_has_acknowledged(fresh_mongodb: MongoServer) -> None:
    url = f"{fresh_mongodb.url}/letters?serverSelectionTimeoutMS=200"
    told = [[letter(f"{place}-{number}") for number in range(10)] for place in range(12)]
    stores = [MongoStore(url, clock=ManualClock()) for _ in range(2)]
    acknowledged = 0

    async def collect(store: MongoStore, batches: Sequence[Sequence[DeadLetter]]) -> None:
        nonlocal acknowledged
        for batch in batches:
            while True:
                try:
                    await store.collect(batch, act=an_act("letters.import", operation_id=batch[0].letter_id))
                except StoreUnavailable:
                    continue
                acknowledged += 1
                break

    async def strike() -> None:
        while acknowledged < len(told) - 4:
            before = acknowledged
            await asyncio.to_thread(fresh_mongodb.kill)
            await asyncio.to_thread(fresh_mongodb.start)
            while acknowledged == before:  # noqa: ASYNC110 - several tell
                await asyncio.sleep(0.01)

    await asyncio.gather(collect(stores[0], told[::2]), collect(stores[1], told[1::2]), strike())

    letters = [one for batch in told for one in batch]
    assert sorted(row.letter_id for row in await rows_of(stores[0])) == sorted(one.letter_id for one in letters)
    await check_counts(stores[0])
    await check_deaths(stores[0], letters)
    assert await stores[0].verify() is None
    for store in stores:
        await store.aclose()
