"""A server that is not there, goes away, comes back, or has others at work: said in our words, and gone on from."""

import asyncio
import gc
from urllib.parse import urlsplit

import asyncpg
import pytest
from sqlalchemy import Connection
from sqlalchemy.util import await_only

from redrive.core.errors import StoreError, StoreUnavailable
from redrive.stores.sql import SqlStore, collecting, postgres
from redrive.testing.conformance.store.bench import an_act, letter
from tests.postgres.conftest import OpenStore
from tests.properties.recount import check_counts
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer, ask
from tests.servers.server import until

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


async def test_a_server_that_is_not_there_is_unavailable(open_store: OpenStore) -> None:
    with pytest.raises(StoreUnavailable, match="does not answer") as caught:
        await open_store(f"postgresql://ann:secret@127.0.0.1:{free_port()}/letters").stats()

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "why"), [({"path": "/nowhere"}, "no such database"), ({}, "does not let this user")]
)
async def test_a_database_or_a_user_that_is_not_there_is_unavailable(
    postgres_url: str, open_store: OpenStore, change: dict[str, str], why: str
) -> None:
    place = urlsplit(postgres_url)
    host = place.netloc.rpartition("@")[2]
    changed = place._replace(**(change or {"netloc": f"nobody_known@{host}"}))

    with pytest.raises(StoreUnavailable, match=why):
        await open_store(changed.geturl()).stats()


async def test_a_server_killed_in_the_middle_is_unavailable_and_the_store_goes_on_when_it_is_back(
    fresh_postgres: PostgresServer, open_store: OpenStore
) -> None:
    store = open_store(fresh_postgres.url)
    await store.collect([letter("a"), letter("b")])
    begun, waited = asyncio.Event(), asyncio.Event()

    def half(connection: Connection) -> None:
        collecting.collect(connection, [letter("c")], [], act=None)
        begun.set()
        await_only(waited.wait())
        collecting.collect(connection, [letter("d")], [], act=None)

    writing = asyncio.create_task(store._database.write(half))  # noqa: SLF001 - a call that stops in the middle
    await begun.wait()
    await asyncio.to_thread(fresh_postgres.kill)
    waited.set()
    with pytest.raises(StoreUnavailable):
        await writing
    with pytest.raises(StoreUnavailable):
        await store.collect([letter("c")])
    with pytest.raises(StoreUnavailable):
        await store.stats()

    await asyncio.to_thread(fresh_postgres.start)
    assert (await store.stats()).total == 2
    assert (await store.collect([letter("c")])).new == 1
    await check_counts(store)


async def test_connections_that_died_while_nobody_looked_are_not_noticed(
    fresh_postgres: PostgresServer, open_store: OpenStore
) -> None:
    store = open_store(fresh_postgres.url)
    await store.collect([letter("a")])
    await asyncio.gather(*(store.stats() for _ in range(4)))
    await asyncio.to_thread(fresh_postgres.kill)
    await asyncio.to_thread(fresh_postgres.start)
    assert (await store.collect([letter("b")])).new == 1

    await asyncio.to_thread(fresh_postgres.kill)
    await asyncio.to_thread(fresh_postgres.start)
    assert (await store.stats()).total == 2


async def test_a_transaction_that_the_server_undid_is_done_again(postgres_url: str, open_store: OpenStore) -> None:
    """Somebody else has a row that we need, and waits for our lock: the server ends one of the two, which is us."""
    store = open_store(postgres_url)
    await store.collect([letter("a")], act=an_act("letters.import"))
    other = await asyncpg.connect(postgres_url)
    await other.execute("SET deadlock_timeout = '10min'")
    await other.execute("BEGIN; SELECT * FROM counter WHERE name = 'audit' FOR UPDATE")
    noting = asyncio.create_task(store.note("a", "look", act=an_act("letters.note")))
    await asyncio.to_thread(until, lambda: ask(postgres_url, WAITING), what="our writer waiting for the row")
    await other.execute(f"SELECT pg_advisory_xact_lock({postgres.KEY})")
    await other.execute("COMMIT")
    await noting

    assert (await store.get("a")).note == "look"
    assert await store.verify() is None
    await other.close()


async def test_whoever_waits_for_a_writer_too_long_is_told_so(
    postgres_url: str, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "LOCK_SECONDS", 0.1)
    first, second = open_store(postgres_url), open_store(postgres_url)
    await second.stats()
    writing, go_on = await _stuck(first)

    with pytest.raises(StoreUnavailable, match="keeps the store locked"):
        await second.collect([letter("b")])
    assert (await second.stats()).total == 0
    go_on.set()
    await writing
    assert (await second.collect([letter("b")])).new == 1


async def test_a_writer_that_stands_still_does_not_hold_up_the_others_for_ever(
    postgres_url: str, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "IDLE_SECONDS", 1)  # longer than a busy machine needs from one statement to the next
    first, second = open_store(postgres_url), open_store(postgres_url)
    writing, go_on = await _stuck(first)

    assert (await second.collect([letter("b")])).new == 1
    go_on.set()
    with pytest.raises(StoreUnavailable):
        await writing
    assert (await first.stats()).total == 1


async def test_a_call_that_fails_after_its_caller_has_gone_is_no_accident_to_be_logged(
    postgres_url: str, open_store: OpenStore
) -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["message"]))
    store, before = open_store(postgres_url), asyncio.all_tasks()
    begun, go_on = asyncio.Event(), asyncio.Event()

    def fail(_: Connection) -> None:
        begun.set()
        await_only(go_on.wait())
        raise ConnectionResetError

    reading = asyncio.create_task(store._database.read(fail))  # noqa: SLF001 - a call that stops in the middle
    await begun.wait()
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    go_on.set()
    while asyncio.all_tasks() - before:  # noqa: ASYNC110 - the end of a task that only the store knows
        await asyncio.sleep(0.01)
    del reading
    gc.collect()

    assert complaints == []


async def test_a_standby_is_unavailable_for_writing_and_can_be_read(postgres_url: str, open_store: OpenStore) -> None:
    await open_store(postgres_url).collect([letter("a")])
    reading = open_store(f"{postgres_url}?default_transaction_read_only=on")

    assert (await reading.stats()).total == 1
    with pytest.raises(StoreUnavailable, match="only reads"):
        await reading.collect([letter("b")])


async def test_a_name_too_long_for_an_index_is_refused_for_good(postgres_url: str, open_store: OpenStore) -> None:
    store = open_store(postgres_url)
    long = "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(9_000))  # hard to compress

    with pytest.raises(StoreError, match="longer than PostgreSQL can keep in an index") as caught:
        await store.collect([letter("a", error_type=long)])
    assert not isinstance(caught.value, StoreUnavailable)
    assert (await store.stats()).total == 0


async def _stuck(store: SqlStore) -> tuple[asyncio.Task[None], asyncio.Event]:
    """A writer that has taken in a letter and does not commit it before it is told to go on."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    def wait(connection: Connection) -> None:
        collecting.collect(connection, [letter("a")], [], act=None)
        begun.set()
        await_only(go_on.wait())
        collecting.collect(connection, [letter("a2")], [], act=None)

    writing = asyncio.create_task(store._database.write(wait))  # noqa: SLF001 - a call that stops in the middle
    while not begun.is_set():
        assert not writing.done(), writing
        await asyncio.sleep(0.01)
    return writing, go_on
