"""More letters than one call changes at once: as in the suite of all stores, with chunks that are small."""

import pytest

from redrive.core.query import Query
from redrive.core.redrive import ItemStatus, Planned, RedriveState
from redrive.testing.conformance.store.bench import AT, a_redrive, an_act, letter
from tests.mongo.conftest import OpenStore
from tests.properties.recount import check_counts

NAMES = [f"l{number:02}" for number in range(25)]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in ("claiming", "items", "letters", "recounting", "shelves", "store"):
        monkeypatch.setattr(f"redrive.stores.mongo.{room}.CHUNK", 10)
    monkeypatch.setattr("redrive.stores.mongo.applying._INSERTS", 10)
    monkeypatch.setattr("redrive.stores.mongo.applying._UPDATES", 4)


async def test_many_letters_are_discarded_and_purged(mongodb_url: str, open_store: OpenStore) -> None:
    store = open_store(mongodb_url)
    await store.collect([letter(name) for name in NAMES])
    done = await store.discard(dict.fromkeys(NAMES, 1), act=an_act("letters.discard"))

    assert [*done] == NAMES
    assert (await store.stats()).by_state == {"discarded": 25}
    await check_counts(store)
    later = AT.replace(year=2031)
    assert await store.purge(Query(), before=later, limit=22, act=an_act("letters.purge")) == 22
    assert [row.letter_id for row in await store.select(Query(), limit=50)] == NAMES[22:]
    await check_counts(store)
    assert await store.verify() is None
    assert (await store.recount()).mended == 0


async def test_more_letters_than_one_call_takes_are_left_at_the_end(mongodb_url: str, open_store: OpenStore) -> None:
    store = open_store(mongodb_url)
    await store.collect([letter(name) for name in NAMES])
    items = [Planned(name, 1) for name in NAMES]
    await store.create(a_redrive("r1", total=25), items, act=an_act("letters.redrive"))
    for _ in range(2):
        claimed = await store.claim("r1", step=0, limit=100)
        await store.sent("r1", {one.letter_id: "m" for one in claimed}, at=AT)
    await store.mark("r1", RedriveState.CANCELLED, why="no", act=an_act("redrives.cancel"))

    assert [*(await store.progress("r1")).steps] == [{ItemStatus.UNCONFIRMED: 20, ItemStatus.UNTOUCHED: 5}]
    await check_counts(store)
