"""Redis as people use it: programs of their own beside ours, on one server, and redis-cli to look."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import redis

import redrive
from redrive.brokers.dlq_entry import as_send_back
from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.wiring import collector, open_store
from tests.servers.redis import ask

APP = """
import json, os
import redrive

app = redrive.App(os.environ["REDRIVE_BROKER"], name="shop", grace=5)


@app.consumer("orders", retry=[0.05, 0.1], breaker=None)
async def charge(body: bytes, message: redrive.Message, delivery: redrive.Delivery) -> None:
    saw = json.dumps([message.id, delivery.generation, repr((body, message.headers))])
    with open("saw", "a") as file:
        file.write(saw + "\\n")
    if not delivery.generation:
        raise ValueError("no rate")
"""

# What others write with plain XADD, field after field.
FOREIGN = {
    "a payload and more": (b"payload", b'{"id": 1}', b"user_id", b"u7", b"colour", b"red", b"colour", b"blue"),
    "no payload": (b"id", b"2", b"name", b"caf\xc3\xa9"),
    "bytes that are no text": (b"payload", b"\x00\xff\r\n", b"raw\xff", b"\xfe\x00"),
    "a payload that does not come first": (b"z", b"1", b"payload", b"{}", b"a", b"2"),
}


class Shop:
    """A folder with an app, and its queue on a server."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.env = {**os.environ, "REDRIVE_BROKER": url, "REDRIVE_LOG_LEVEL": "warning"}
        self.client = redis.Redis.from_url(url, protocol=2)
        self.client.response_callbacks.clear()
        (folder / "first.py").write_text(APP)

    def run(self, *words: str, status: int = 0) -> str:
        command = (sys.executable, "-m", "redrive.cli", *words)
        ended = subprocess.run(
            command, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False, timeout=120
        )
        assert ended.returncode == status, f"{words}: {ended.returncode}\n{ended.stdout}{ended.stderr}"
        return ended.stdout

    @contextmanager
    def worker(self) -> Iterator[None]:
        command = (sys.executable, "-m", "redrive.cli", "worker", "first:app", "--processes", "2")
        process = subprocess.Popen(command, cwd=self.folder, env=self.env)
        try:
            yield
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()

    def facts(self, *words: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run(*words, "--json").splitlines()]

    def ask(self, *words: str | bytes) -> Any:
        """The answer to one command, as redis-cli would show it."""
        return self.client.execute_command(*words)  # type: ignore[no-untyped-call]

    def entries(self, stream: str) -> list[list[bytes]]:
        """The fields of every entry, names and values in turn."""
        return [fields for _, fields in self.ask("XRANGE", stream, "-", "+")]

    def saw(self, generation: int) -> list[tuple[str, str]]:
        """Which messages the handler saw in a generation: their ids, and what was in them."""
        path = self.folder / "saw"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(one[0], one[2]) for one in map(json.loads, lines) if one[1] == generation]


@pytest.fixture
def shop(tmp_path: Path, empty_redis: str) -> Iterator[Shop]:
    shop = Shop(tmp_path, empty_redis)
    yield shop
    shop.client.close()


def until(true: Callable[[], bool], *, what: str, within: float = 90) -> None:
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline, f"stuck: {what}"
        time.sleep(0.05)


def test_entries_of_anyone_are_retried_die_readably_and_come_back_as_they_were(shop: Shop) -> None:
    for fields in FOREIGN.values():
        shop.ask("XADD", "orders", "*", *fields)
    with shop.worker():
        until(lambda: shop.ask("XLEN", "orders:dlq") == len(FOREIGN), what="all are dead")
        letters = [dict(zip(fields[::2], fields[1::2], strict=True)) for fields in shop.entries("orders:dlq")]
        shop.run("dlq", "redrive", "--all", "--yes", "--queue", "orders")
        until(lambda: len(shop.saw(1)) == len(FOREIGN), what="all have come back")

    (letter,) = [one for one in letters if one.get(b"user_id") == b"u7"]
    expected = {
        b"payload": b'{"id": 1}',
        b"error_type": b"ValueError",
        b"error_message": b"no rate",
        b"retry_count": b"3",
    }
    assert {name: letter[name] for name in expected} == expected
    assert letter[b"original_message_id"].decode() in dict(shop.saw(0))
    assert datetime.fromisoformat(letter[b"failed_at"].decode()).tzinfo is not None
    assert sorted(seen for _, seen in shop.saw(0)) == sorted([seen for _, seen in shop.saw(1)] * 3)
    assert shop.entries("orders") == [list(fields) for fields in FOREIGN.values()], "a stream of others is not trimmed"
    (queue,) = shop.facts("queues")
    places = ("waiting", "in_flight", "scheduled", "held", "dead")
    assert {place: queue[place] for place in places} == dict.fromkeys(places, 0)


def test_a_paused_group_leaves_its_messages_until_it_is_resumed(shop: Shop) -> None:
    shop.run("publish", "orders", "1")
    with shop.worker():
        until(lambda: shop.ask("XLEN", "orders:dlq") == 1, what="the first is dead")
    shop.run("queues", "pause", "orders", "--why", "the bank is down")
    shop.run("publish", "orders", "2")
    with shop.worker():
        until(lambda: shop.facts("queues")[0]["workers"] == 2, what="both processes are at work")
        paused = shop.facts("queues")[0]
        shop.run("queues", "resume", "orders")
        until(lambda: shop.ask("XLEN", "orders:dlq") == 2, what="the second is dead")
    entry_id = shop.facts("dlq", "peek", "--queue", "orders")[0]["entry_id"]
    shop.run("dlq", "remove", entry_id, "--queue", "orders")

    assert (paused["paused"], paused["waiting"], paused["in_flight"]) == ("the bank is down", 1, 0)
    assert shop.facts("dlq", "length", "--queue", "orders")[0]["length"] == 1
    assert "appendonly is off" in shop.run("doctor", status=1)
    assert shop.ask("XLEN", "orders") == 0, "a stream of ours is trimmed"


def test_dead_letters_of_a_hand_written_loop_are_collected(shop: Shop) -> None:
    fields = {
        "payload": '{"content": "hello"}',
        "original_message_id": "1734350400000-0",
        "error_type": "TimeoutError",
        "error_message": "no answer",
        "retry_count": "3",
        "failed_at": "2024-12-16T12:00:00+00:00",
        "user_id": "17",
    }
    shop.ask("XADD", "orders:dlq", "*", *[part for pair in fields.items() for part in pair])
    shop.run("collect", "--once", "--queue", "orders")
    (row,) = shop.facts("letters", "list")
    (letter,) = shop.facts("letters", "export", row["letter_id"])

    assert {name: str(letter[name]) for name in fields} == fields
    assert shop.ask("XLEN", "orders:dlq") == 0


@pytest.mark.parametrize(("payload", "collected_as"), [("data", "payload"), ("*", "*")])
async def test_an_operator_need_not_know_what_the_queue_calls_its_payload(
    empty_redis: str, payload: str, collected_as: str
) -> None:
    ask(empty_redis, "XADD", "orders", "*", "colour", "red", "data", '{"id": 7}')
    app = redrive.App(f"{empty_redis}?payload={payload}", name="shop")
    saw: list[tuple[bytes, object]] = []

    @app.consumer("orders", retry=0)
    async def charge(body: bytes, message: redrive.Message, delivery: redrive.Delivery) -> None:
        saw.append((body, message.headers))
        if not delivery.generation:
            raise ValueError("no rate")

    store = open_store("memory://")
    operator, collecting = redrive.connect(empty_redis), redrive.connect(f"{empty_redis}?payload={collected_as}")
    async with app.worker(), collector(collecting, store, queues=["orders"]):
        (row,) = await found(lambda: store.select(Query(states=(LetterState.OPEN,)), limit=1))
        await operator.send_back([as_send_back((await store.get(row.letter_id)).letter)])
        await found(lambda: store.select(Query(states=(LetterState.RESOLVED,)), limit=1))
    for broker in (operator, collecting):
        await broker.aclose()

    assert len(saw) == 2
    assert saw[0] == saw[1]


async def found(look: Callable[[], Awaitable[Sequence[Any]]]) -> Sequence[Any]:
    """What is looked for, once it is there."""
    async with asyncio.timeout(60):
        while not (rows := await look()):  # noqa: ASYNC110 - looking is how a store is asked
            await asyncio.sleep(0.05)
    return rows
