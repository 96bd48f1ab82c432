"""Opening a store: addresses, versions, and servers that are not there."""

import asyncio
import sys

import pytest

from redrive import wiring
from redrive.core.errors import ConfigError, MissingExtra, StoreError, StoreUnavailable
from redrive.stores.mongo import MongoStore
from redrive.stores.mongo.address import Address
from redrive.testing.clock import ManualClock
from redrive.testing.conformance.store.bench import letter
from tests.mongo.conftest import OpenStore
from tests.properties.recount import check_counts
from tests.servers.mongo import MongoServer, client
from tests.servers.ports import free_port


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("mongodb://here", Address("mongodb://here", "redrive", "letters")),
        ("mongodb://here:27018/hive", Address("mongodb://here:27018/hive", "hive", "letters")),
        (
            "mongodb://ann:s3@a,b/hive?replicaSet=rs0&collection=execution_tickets_dlq",
            Address("mongodb://ann:s3@a,b/hive?replicaSet=rs0", "hive", "execution_tickets_dlq"),
        ),
    ],
)
def test_an_address_names_a_database_and_a_collection(url: str, address: Address) -> None:
    assert Address.of(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://",
        "mongodb:///hive",
        "mongodb://here/a.b",
        "mongodb://here/hive?collection=",
        "mongodb://here/hive?collection=a$b",
        "mongodb://here/hive?collection=system.users",
        "mongodb://here:port/hive",
        "mongodb://ann:p@ss@here/hive?w=often",
    ],
)
def test_a_mistake_in_the_url_is_told_at_once(url: str) -> None:
    with pytest.raises(ConfigError, match="store: "):
        wiring.open_store(url)


def test_a_password_is_not_shown() -> None:
    with pytest.raises(ConfigError) as told:
        wiring.open_store("mongodb://ann:s3cret@here:port/hive")

    assert "s3cret" not in str(told.value)


@pytest.mark.parametrize("scheme", ["mongodb", "mongodb+srv"])
def test_a_missing_driver_is_named_with_its_pip_command(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("redrive.stores.mongo")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pymongo" else name)

    with pytest.raises(MissingExtra, match=r"pip install 'redrive\[mongodb\]'"):
        wiring.open_store(f"{scheme}://here")


async def test_many_that_open_an_empty_database_at_once_begin_one_store(
    empty_mongodb: str, open_store: OpenStore
) -> None:
    stores = [open_store(empty_mongodb) for _ in range(4)]
    await asyncio.gather(*(store.collect([letter(f"l{place}")]) for place, store in enumerate(stores)))

    assert (await stores[0].stats()).total == 4
    await check_counts(stores[0])


async def test_two_stores_in_one_database_know_nothing_of_each_other(mongodb_url: str, open_store: OpenStore) -> None:
    one, other = open_store(mongodb_url), open_store(f"{mongodb_url}?collection=others")
    await one.collect([letter("a")])

    assert ((await one.stats()).total, (await other.stats()).total) == (1, 0)


async def test_a_store_of_a_later_version_is_refused(empty_mongodb: str, open_store: OpenStore) -> None:
    await open_store(empty_mongodb).stats()
    with client(empty_mongodb) as connected:
        connected.get_default_database()["letters.head"].update_one({}, {"$set": {"schema": 99}})

    with pytest.raises(StoreError, match="later version"):
        await open_store(empty_mongodb).stats()


async def test_a_server_that_is_not_there_is_unavailable(open_store: OpenStore) -> None:
    url = f"mongodb://ann:s3cret@127.0.0.1:{free_port()}/letters?serverSelectionTimeoutMS=50"
    with pytest.raises(StoreUnavailable, match="does not answer") as told:
        await open_store(url).stats()

    assert "s3cret" not in str(told.value)


async def test_a_store_comes_back_with_its_server(fresh_mongodb: MongoServer, open_store: OpenStore) -> None:
    store = open_store(f"{fresh_mongodb.url}/letters?serverSelectionTimeoutMS=3000")  # it looks again every half second
    await store.collect([letter("a")])
    fresh_mongodb.kill()
    for call in (store.stats, lambda: store.collect([letter("b")])):
        with pytest.raises(StoreUnavailable):
            await call()
    fresh_mongodb.start()

    assert (await store.collect([letter("a"), letter("b")])).new == 1
    assert (await store.stats()).total == 2


async def test_a_letter_that_is_too_large_is_refused_and_the_store_goes_on(
    mongodb_url: str, open_store: OpenStore
) -> None:
    store = open_store(mongodb_url)
    with pytest.raises(StoreError, match="larger than MongoDB can keep"):
        await store.collect([letter("a"), letter("large", payload=bytes(16 * 1024 * 1024))])

    assert (await store.collect([letter("a")])).new == 1


async def test_a_closed_store_says_so(mongodb_url: str) -> None:
    store = MongoStore(mongodb_url, clock=ManualClock())
    await store.stats()
    await store.aclose()

    with pytest.raises(StoreError, match="has been closed"):
        await store.stats()


def test_a_store_belongs_to_one_event_loop_until_that_is_closed(mongodb_url: str) -> None:
    async def elsewhere() -> None:
        with pytest.raises(StoreError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, store.stats())

    async def use() -> None:
        await store.stats()
        await elsewhere()
        await store.aclose()

    store = MongoStore(mongodb_url, clock=ManualClock())
    asyncio.run(use())
