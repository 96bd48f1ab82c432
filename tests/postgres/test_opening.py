"""How a database becomes a letter store, and what a URL may say."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from redrive import wiring
from redrive.core.errors import ConfigError, StoreError
from redrive.core.query import Query
from redrive.stores.sql import SqlStore, schema
from redrive.stores.sql.tables import metadata
from redrive.testing.clock import ManualClock
from redrive.testing.conformance.store.bench import letter
from tests.postgres.conftest import OpenStore
from tests.servers.postgres import ask


async def test_many_openers_of_an_empty_database_create_it_once(empty_postgres: str, open_store: OpenStore) -> None:
    stores = [open_store(empty_postgres) for _ in range(6)]
    await asyncio.gather(*(store.collect([letter(f"l{number}")]) for number, store in enumerate(stores)))

    assert (await stores[0].stats()).total == 6


def test_many_processes_on_an_empty_database_create_it_once(empty_postgres: str) -> None:
    program = (
        "import asyncio, sys\n"
        "from redrive.clock import SystemClock\n"
        "from redrive.stores.sql import SqlStore\n"
        "store = SqlStore(sys.argv[1], clock=SystemClock())\n"
        "sys.stdin.readline()\n"
        "async def look():\n"
        "    total = (await store.stats()).total\n"
        "    await store.aclose()\n"
        "    return total\n"
        "print(asyncio.run(look()))\n"
    )
    command = [sys.executable, "-c", program, empty_postgres]
    pipe = subprocess.PIPE
    started = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(3)]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()

    assert [process.communicate()[0] for process in started] == ["0\n"] * 3


async def test_the_tables_are_those_that_the_code_knows(postgres_url: str, open_store: OpenStore) -> None:
    def differences(connection: Connection) -> list[object]:
        options = {
            "include_object": lambda _object, name, *_: not name.startswith(("letter_index", "letter_text_grams"))
        }
        return [*compare_metadata(MigrationContext.configure(connection, opts=options), metadata)]

    store = open_store(postgres_url)
    assert await store._database.read(differences) == []  # noqa: SLF001 - nobody else reads the schema
    assert await store._database.read(schema.is_current)  # noqa: SLF001


def test_text_is_in_the_order_of_its_characters_whatever_language_the_database_speaks(postgres_url: str) -> None:
    others = ask(
        postgres_url,
        "SELECT string_agg(table_name || '.' || column_name, ' ') FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND data_type IN ('text', 'character varying')"
        " AND table_name <> 'alembic_version' AND collation_name IS DISTINCT FROM 'C'",
    )
    narrow = ask(
        postgres_url,
        "SELECT string_agg(table_name || '.' || column_name, ' ') FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND data_type IN ('integer', 'smallint')",
    )

    assert (others, narrow) == (None, None)


async def test_a_database_from_a_later_version_is_refused_in_plain_words(
    empty_postgres: str, open_store: OpenStore
) -> None:
    await open_store(empty_postgres).stats()
    ask(empty_postgres, "UPDATE alembic_version SET version_num = '0999'")

    with pytest.raises(StoreError, match=r"schema 0999.*newer Redrive"):
        await open_store(empty_postgres).stats()


@pytest.fixture
def plain_user(empty_postgres: str) -> Iterator[str]:
    """The same database, for a user who may create tables and nothing else."""
    ask(empty_postgres, "CREATE ROLE plain LOGIN", "GRANT ALL ON SCHEMA public TO plain")
    host = urlsplit(empty_postgres).netloc.rpartition("@")[2]
    yield urlsplit(empty_postgres)._replace(netloc=f"plain@{host}").geturl()
    ask(empty_postgres, "DROP OWNED BY plain CASCADE", "DROP ROLE plain")


async def test_without_the_extension_a_search_finds_the_same(plain_user: str, open_store: OpenStore) -> None:
    store = open_store(plain_user)
    await store.collect([letter("a", payload=b"100% of it"), letter("b", payload=b"1000 of it")])
    found = [row.letter_id for row in (await store.find(Query(text="0% OF"))).rows]

    assert found == ["a"]
    assert _indexes(plain_user) == 0
    await store.aclose()


def test_with_the_extension_text_has_an_index(postgres_url: str) -> None:
    assert _indexes(postgres_url) == 1


@pytest.mark.parametrize(
    "settings",
    ["prepared_statement_cache_size=0", "prepared_statement_cache_size=7&application_name=redrive", "sslmode=prefer"],
)
async def test_a_url_may_say_more(postgres_url: str, open_store: OpenStore, settings: str) -> None:
    store = open_store(f"{postgres_url}?{settings}")
    await store.collect([letter("a")])

    assert (await store.get("a")).letter.letter_id == "a"


async def test_both_spellings_of_the_url_are_one_store(postgres_url: str) -> None:
    store = wiring.open_store(postgres_url)
    await store.collect([letter("a")])
    await store.aclose()
    again = wiring.open_existing_store(postgres_url.replace("postgresql://", "postgres://"))

    assert (await again.stats()).total == 1
    await again.aclose()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("postgresql://ann:secret@here:port/letters", "port"),
        ("postgresql://ann:secret@here:5432,there:70000/letters", "0-65535"),
        ("postgresql://ann:secret@here/letters?prepared_statement_cache_size=few", "expected a number, got 'few'"),
    ],
)
def test_a_url_with_a_mistake_is_refused_at_once_without_its_password(url: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"store: .*{why}") as caught:
        wiring.open_store(url)

    assert "secret" not in str(caught.value)


async def test_a_closed_store_says_so(postgres_url: str, open_store: OpenStore) -> None:
    store = open_store(postgres_url)
    await store.aclose()

    with pytest.raises(StoreError, match="closed"):
        await store.stats()


def test_a_store_moves_to_the_next_event_loop_when_the_first_is_closed(postgres_url: str) -> None:
    store = SqlStore(postgres_url, clock=ManualClock())

    async def look() -> int:
        await store.collect([letter("a")])
        total = (await store.stats()).total
        await store._database._lodging.at_home().aclose()  # type: ignore[attr-defined]  # noqa: SLF001 - leave no connection behind
        return total

    assert [asyncio.run(look()), asyncio.run(look())] == [1, 1]


async def test_a_second_event_loop_at_the_same_time_is_refused_in_plain_words(
    postgres_url: str, open_store: OpenStore
) -> None:
    store = open_store(postgres_url)
    await store.stats()

    def elsewhere() -> None:
        asyncio.run(store.stats())

    with pytest.raises(StoreError, match="another event loop"):
        await asyncio.to_thread(elsewhere)
    assert (await store.stats()).total == 0


async def test_a_cancelled_call_is_carried_out_and_leaves_the_store_usable(
    postgres_url: str, open_store: OpenStore
) -> None:
    store = open_store(postgres_url)
    await store.stats()
    for number in range(5):
        call = asyncio.create_task(store.collect([letter(f"l{number}-{place}") for place in range(50)]))
        for _ in range(number):
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    await store.collect([letter("a")])

    assert (await store.stats()).total in (1 + 50 * 4, 1 + 50 * 5)  # a call that had not begun is not carried out


def test_a_process_that_forgets_to_close_the_store_still_ends(postgres_url: str, tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from redrive.clock import SystemClock\n"
        "from redrive.stores.sql import SqlStore\n"
        "store = SqlStore(sys.argv[1], clock=SystemClock())\n"
        "asyncio.run(store.stats())\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, postgres_url], timeout=60, check=False)

    assert ended.returncode == 0


def _indexes(url: str) -> int:
    number: int = ask(url, "SELECT count(*) FROM pg_indexes WHERE indexname = 'letter_text_grams'")
    return number
