"""Opening the file: safe together, refusing what is not ours, and never carried across a fork."""

# ruff: noqa: ASYNC240 - a test may wait for the disk

import asyncio
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from redrive.brokers.sqlite import SqliteBroker
from redrive.brokers.sqlite.schema import VERSION
from redrive.core.errors import BrokerError, BrokerUnavailable, ConfigError
from redrive.core.message import Message
from redrive.testing.clock import ManualClock

MESSAGE = Message("", "orders", b"1")

FORKED = """
import asyncio, os, sys
from redrive.brokers.sqlite import SqliteBroker
from redrive.core.message import Message
from redrive.testing.clock import ManualClock

async def publish(broker, body):
    await broker.publish("orders", [Message("", "orders", body)])

def is_open(path):
    links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    return any(os.path.islink(link) and os.readlink(link).startswith(path) for link in links)

broker = SqliteBroker(sys.argv[1], clock=ManualClock(), reserve=0)
asyncio.run(publish(broker, b"before"))
child = os.fork()
inherited = child == 0 and is_open(sys.argv[1])
asyncio.run(publish(broker, b"child" if child == 0 else b"parent"))
if child == 0:
    asyncio.run(broker.aclose())
    os._exit(inherited)
_, inherited = os.waitpid(child, 0)
asyncio.run(publish(broker, b"after"))
asyncio.run(broker.aclose())
sys.exit(bool(inherited))
"""


def test_making_a_broker_touches_nothing(file: Path, clock: ManualClock) -> None:
    SqliteBroker(file, clock=clock)

    assert not file.exists()


@pytest.mark.parametrize("path", ["", ":memory:"])
def test_a_broker_needs_a_file(path: str, clock: ManualClock) -> None:
    with pytest.raises(ConfigError):
        SqliteBroker(path, clock=clock)


async def test_many_may_open_a_new_file_at_once(reopen: Callable[[], SqliteBroker]) -> None:
    brokers = [reopen() for _ in range(12)]
    ids = await asyncio.gather(*(broker.publish("orders", [MESSAGE]) for broker in brokers))

    assert len({each for (each,) in ids}) == 12
    assert (await brokers[0].depth("orders", group="")).waiting == 12


async def test_the_file_is_a_wal_file_that_waits_for_the_disk(broker: SqliteBroker) -> None:
    await broker.publish("orders", [MESSAGE])
    found = {finding.check: finding.found for finding in await broker.diagnose()}

    assert found["journal"] == "journal_mode is wal"
    assert found["fsync"].startswith("synchronous is 2")


async def test_a_new_file_is_not_for_everyone(broker: SqliteBroker, file: Path) -> None:
    await broker.publish("orders", [MESSAGE])
    modes = {stat.S_IMODE(Path(f"{file}{end}").stat().st_mode) & stat.S_IRWXO for end in ("", "-wal")}

    assert modes == {0}


async def test_a_file_with_other_tables_is_refused_and_left_as_it_is(broker: SqliteBroker, file: Path) -> None:
    with closing(sqlite3.connect(file)) as theirs:
        theirs.execute("CREATE TABLE letters (id)")
    before = file.read_bytes()
    with pytest.raises(ConfigError, match="of Redrive's own"):
        await broker.publish("orders", [MESSAGE])

    assert file.read_bytes() == before


async def test_a_file_of_another_version_is_refused(broker: SqliteBroker, file: Path) -> None:
    await broker.publish("orders", [MESSAGE])
    await broker.aclose()
    with closing(sqlite3.connect(file)) as newer:
        newer.execute("PRAGMA user_version = 99")
    with pytest.raises(ConfigError, match="version 99"):
        await SqliteBroker(file, clock=ManualClock(), reserve=0).publish("orders", [MESSAGE])


async def test_a_file_of_the_version_before_is_brought_up_to_date_with_what_waits_in_it(
    broker: SqliteBroker, file: Path
) -> None:
    await broker.publish("orders", [MESSAGE])
    await broker.aclose()
    with closing(sqlite3.connect(file)) as older:
        older.execute("ALTER TABLE alive DROP COLUMN state")
        older.execute("PRAGMA user_version = 2")
    newer = SqliteBroker(file, clock=ManualClock(), reserve=0)
    await newer.publish("orders", [MESSAGE])
    await newer.aclose()

    with closing(sqlite3.connect(file)) as found:
        assert found.execute("PRAGMA user_version").fetchone() == (VERSION,)
        assert found.execute("SELECT count(*) FROM fresh").fetchone() == (2,)
        assert "state" in {row[1] for row in found.execute("PRAGMA table_info(alive)")}


async def test_a_file_that_is_no_database_is_a_broker_error(broker: SqliteBroker, file: Path) -> None:
    file.write_bytes(b"no database " * 1000)
    with pytest.raises(BrokerError, match="not an SQLite file"):
        await broker.publish("orders", [MESSAGE])


async def test_a_folder_that_is_not_there_is_a_broker_unavailable(tmp_path: Path, clock: ManualClock) -> None:
    broker = SqliteBroker(tmp_path / "missing" / "redrive.db", clock=clock)
    with pytest.raises(BrokerUnavailable, match="folder"):
        await broker.publish("orders", [MESSAGE])
    await broker.aclose()


async def test_ids_are_unique_even_if_the_file_is_made_anew(file: Path, clock: ManualClock) -> None:
    seen: list[str] = []
    for _ in range(2):
        broker = SqliteBroker(file, clock=clock, reserve=0)
        seen += await broker.publish("orders", [MESSAGE])
        await broker.aclose()
        file.unlink()

    assert len(set(seen)) == 2


async def test_a_broker_may_be_carried_across_a_fork_but_its_connection_is_not(
    broker: SqliteBroker, file: Path
) -> None:
    program = [sys.executable, "-W", "ignore", "-c", FORKED, str(file)]
    await asyncio.to_thread(subprocess.run, program, check=True)

    assert (await broker.depth("orders", group="")).waiting == 4
    assert {finding.level for finding in await broker.diagnose() if finding.check == "integrity"} == {"ok"}
