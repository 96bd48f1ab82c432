"""Writers that stand still and are overtaken: before they have committed, and after."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from redrive.core.errors import StoreUnavailable
from redrive.core.query import Query
from redrive.stores.mongo import MongoStore, journal
from redrive.stores.mongo.journal import Journal
from redrive.testing.conformance.store.bench import AT, DISCARDED, OPEN, an_act, an_outcome, letter
from tests.mongo.conftest import OpenStore
from tests.properties.recount import check_counts, check_deaths
from tests.servers.mongo import client


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn may be taken over at once."""
    monkeypatch.setattr(journal, "LEASE_SECONDS", 0)


def journal_of(store: MongoStore) -> Journal:
    home = store._database._lodging.at_home()  # noqa: SLF001 - a test stands in its way
    return home._journal  # noqa: SLF001


def stand_still(store: MongoStore, step: str, meanwhile: Callable[[], Awaitable[object]]) -> None:
    """Let something happen before a step of a store's journal, once."""
    held = journal_of(store)
    goes_on = getattr(held, step)

    async def late(*args: object) -> object:
        setattr(held, step, goes_on)
        await meanwhile()
        return await goes_on(*args)

    setattr(held, step, late)


async def test_a_writer_overtaken_before_its_commit_reads_again(mongodb_url: str, open_store: OpenStore) -> None:
    slow, quick = open_store(mongodb_url), open_store(mongodb_url)
    await slow.collect([letter("a"), letter("b")])
    stand_still(slow, "commit", lambda: quick.discard({"a": 1}, act=an_act("letters.discard")))
    done = await slow.discard({"a": 1, "b": 1}, act=an_act("letters.discard"))

    assert done == ["b"]
    assert (await quick.stats()).by_state == {DISCARDED.value: 2}
    assert len((await quick.records()).rows) == 4
    assert await quick.verify() is None
    await check_counts(quick)


async def test_a_writer_that_wakes_up_when_its_turn_is_long_forgotten_changes_nothing(
    mongodb_url: str, open_store: OpenStore
) -> None:
    slow, quick = open_store(mongodb_url), open_store(mongodb_url)
    await slow.collect([letter("a"), letter("b")])

    async def meanwhile() -> None:
        for name in "cdef":
            await quick.collect([letter(name)])
        await quick.discard({"a": 1}, act=an_act("letters.discard"))

    stand_still(slow, "commit", meanwhile)
    assert await slow.discard({"a": 1, "b": 1}, act=an_act("letters.discard")) == ["b"]

    await check_counts(quick)
    assert len((await quick.records()).rows) == 4
    assert await quick.verify() is None


async def test_a_writer_overtaken_after_its_commit_overwrites_nothing(mongodb_url: str, open_store: OpenStore) -> None:
    slow, quick = open_store(mongodb_url), open_store(mongodb_url)
    await slow.collect([letter("a"), letter("b")])
    relapses = [letter("a", generation=1, fingerprint="f2"), letter("c")]

    async def meanwhile() -> None:
        assert (await quick.collect([letter("d")], [an_outcome("a", 1), an_outcome("b", 1)])).resolved == 2
        life = (await quick.get("c")).life
        await quick.discard({"c": life.version}, act=an_act("letters.discard"))
        await quick.note("a", "seen", act=an_act("letters.note"))

    stand_still(slow, "finish", meanwhile)
    assert (await slow.collect(relapses)).reopened == 1

    states = {name: (await slow.get(name)).life.state.value for name in "abcd"}
    assert states == {"a": "resolved", "b": "resolved", "c": "discarded", "d": "open"}
    assert (await slow.get("a")).note == "seen"
    await check_counts(slow)
    await check_deaths(slow, [letter("a"), letter("b"), *relapses, letter("d")])
    assert await slow.verify() is None


async def test_a_turn_that_others_keep_is_waited_for_and_then_given_up(
    mongodb_url: str, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "LEASE_SECONDS", 3600)
    monkeypatch.setattr(journal, "WAIT_SECONDS", 0.05)
    slow, quick = open_store(mongodb_url), open_store(mongodb_url)
    await slow.collect([letter("a")])

    async def meanwhile() -> None:
        with pytest.raises(StoreUnavailable, match="another process keeps the store locked"):
            await quick.collect([letter("b")])
        assert [row.letter_id for row in (await quick.find(Query())).rows] == ["a"]

    stand_still(slow, "commit", meanwhile)
    await slow.collect([letter("c")])
    assert (await quick.collect([letter("b")])).new == 1


async def test_a_turn_is_kept_for_as_long_as_the_work_takes(
    mongodb_url: str, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "LEASE_SECONDS", 3600)
    monkeypatch.setattr(journal, "RENEW_SECONDS", 0.01)
    store = open_store(mongodb_url)
    await store.collect([letter("a")])

    def until() -> int:
        with client(mongodb_url) as connected:
            found = connected.get_default_database()["letters.turns"].find_one(
                {"until": {"$gt": 0}}, sort=[("_id", -1)]
            )
            assert found is not None
            return int(str(found["until"]))

    async def meanwhile() -> None:
        first = until()
        while until() == first:  # noqa: ASYNC110 - nobody tells when it has changed
            await asyncio.sleep(0.01)

    stand_still(store, "commit", meanwhile)
    await store.collect([letter("b")])


async def test_what_the_server_refuses_is_put_aside_and_holds_up_nobody(
    mongodb_url: str, open_store: OpenStore
) -> None:
    store = open_store(mongodb_url)
    await store.collect([letter("a")])
    with client(mongodb_url) as connected:  # somebody puts a letter there that we do not know of
        letters = connected.get_default_database()["letters"]

        async def meanwhile() -> None:
            letters.insert_one({"_id": 999, "letter_id": "b"})

        stand_still(store, "commit", meanwhile)
        with pytest.raises(Exception, match="refused 1 documents"):
            await store.collect([letter("b"), letter("c")])
        letters.delete_one({"_id": 999})
        refused = connected.get_default_database()["letters.refused"].find_one()

    assert refused is not None
    assert (await store.collect([letter("c")])).known == 1
    assert (await store.get("c")).life.state is OPEN
    assert (await store.recount()).letters == 2
    await check_counts(store)


async def test_a_call_is_carried_out_even_if_its_caller_is_cancelled(mongodb_url: str, open_store: OpenStore) -> None:
    store = open_store(mongodb_url)
    await store.collect([letter("a")])
    reached = asyncio.Event()

    async def meanwhile() -> None:
        reached.set()

    stand_still(store, "commit", meanwhile)
    calling = asyncio.create_task(store.collect([letter("b")]))
    await reached.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    await store.note("b", "there", act=an_act("letters.note", at=AT))

    assert (await store.get("b")).note == "there"
