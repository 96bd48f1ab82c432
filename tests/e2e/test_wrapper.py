"""The wrapper on real brokers, where it is used: in plain scripts, threads, event loops and forked workers."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

import redrive
from redrive.brokers.dlq_entry import as_send_back
from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.wiring import collector, open_store


@pytest.fixture(params=["sqlite", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    on_sqlite = request.param == "sqlite"
    return f"sqlite:///{tmp_path / 'letters.db'}" if on_sqlite else request.getfixturevalue("empty_redis")


async def payloads(url: str) -> list[bytes]:
    broker = redrive.connect(url)
    entries = await broker.dead_letters("orders").peek(100)
    await broker.aclose()
    return sorted(entry.letter.payload or b"" for entry in entries)


def test_scripts_threads_and_event_loops_share_one_dlq(url: str) -> None:
    keep = redrive.dead_letter(url, source="orders", retry=[0])

    @keep
    def charge(_: str) -> None:
        raise RuntimeError("no stock")

    @keep
    async def ship(_: str) -> None:
        raise RuntimeError("no truck")

    charge("script")
    asyncio.run(ship("loop 1"))
    asyncio.run(ship("loop 2"))
    threads = [threading.Thread(target=charge, args=(f"thread {number}",)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(keep.aclose())

    assert asyncio.run(payloads(url)) == [b"loop 1", b"loop 2", b"script", b"thread 1", b"thread 2"]


def test_a_queue_file_that_cannot_be_opened_leaves_the_message_with_the_framework(tmp_path: Path) -> None:
    @redrive.dead_letter(f"sqlite:///{tmp_path / 'no such directory' / 'letters.db'}", source="orders", retry=0)
    def charge(_: str) -> None:
        raise RuntimeError("no stock")

    with pytest.raises(redrive.DeadLetterError) as raised:
        charge("7")
    assert str(raised.value.__cause__) == "no stock"


FORKING = """
import os, sys
import redrive

keep = redrive.dead_letter(sys.argv[1], source="orders", retry=[0])

@keep
def charge(order):
    raise RuntimeError("no stock")

charge("parent, before")
children = []
for number in (1, 2):
    child = os.fork()
    if not child:
        charge(f"child {number}")
        os._exit(0)
    children.append(child)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
charge("parent, after")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_workers_each_write_their_letters_and_the_parent_goes_on(url: str) -> None:
    subprocess.run([sys.executable, "-c", FORKING, url], check=True, timeout=120)

    assert asyncio.run(payloads(url)) == [b"child 1", b"child 2", b"parent, after", b"parent, before"]


def as_message(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> redrive.Message:
    """An entry of a Redis stream, with every field: among them what a redriven one is known by."""
    (entry_id, fields), *_ = args
    rest = [(name.decode(), value) for name, value in fields.items() if name != b"payload"]
    return redrive.Message(entry_id.decode(), "orders", fields[b"payload"], tuple(rest))


async def test_a_hand_written_loop_on_redis_writes_a_letter_and_reports_when_it_has_come_back(empty_redis: str) -> None:
    is_fixed = False

    keep = redrive.dead_letter(empty_redis, source="orders", retry=0, message=as_message)

    @keep
    async def charge(_entry: object) -> None:
        if not is_fixed:
            raise RuntimeError("no stock")

    async def next_entry() -> Any:
        ((_, (entry,)),) = await client.xreadgroup("shop", "one", {"orders": ">"}, count=1, block=60_000)
        return entry

    broker, store = redrive.connect(empty_redis), open_store("memory://")
    client: Any = Redis.from_url(empty_redis, protocol=2)
    async with client, collector(broker, store, queues=["orders"]) as collecting:
        await client.xgroup_create("orders", "shop", id="0", mkstream=True)
        await client.xadd("orders", {"payload": "7", "colour": b"\xff"})
        await charge(await next_entry())
        await collecting.drained()
        (row,) = await store.select(Query(), limit=10)
        letter = (await store.get(row.letter_id)).letter
        await broker.send_back([as_send_back(letter)])
        is_fixed = True
        await charge(await next_entry())
        await collecting.drained()
        stored = await store.get(row.letter_id)
    await keep.aclose()
    await broker.aclose()

    assert (letter.payload, letter.headers, letter.group) == (b"7", (("colour", b"\xff"),), "")
    assert (stored.life.state, stored.life.generation) == (LetterState.RESOLVED, 1)
