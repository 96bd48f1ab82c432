"""The command line, pointed at Redis."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers.redis import RedisServer
from tests.unit.cli.conftest import Said, Shop

SEED = {"payload": '{"id": 1}', "original_message_id": "1-1", "error_type": "ValueError", "error_message": "no"}

Run = Callable[..., Said]


@pytest.fixture
def run(redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    shop = Shop(tmp_path, capsys)

    def run(*words: str, broker: str = redis_url) -> Said:
        return shop.run(*words, "--broker", broker)

    return run


def test_the_dlq_is_worked_on_without_any_store(run: Run, client: Any, queue: str) -> None:
    entries = [client.xadd(f"{queue}:dlq", {**SEED}).decode() for _ in range(3)]
    length = run("dlq", "length", "--queue", queue)
    peek = run("dlq", "peek", "--queue", queue, "--count", "2", "--json")
    redriven = run("dlq", "redrive", "--queue", queue, entries[0])
    removed = run("dlq", "remove", "--queue", queue, entries[1], "--yes")
    again = run("dlq", "redrive", "--queue", queue, entries[0])

    assert (length.out, len(peek.out.splitlines())) == ("3\n", 2)
    assert (redriven.status, removed.status, again.status) == (0, 0, 4)
    assert (client.xlen(queue), client.xlen(f"{queue}:dlq")) == (1, 1)


def test_a_queue_whose_dlq_is_something_else_does_not_hide_the_others(run: Run, client: Any, queue: str) -> None:
    for name in (queue, f"{queue}-b"):
        assert run("publish", name, "1").status == 0
    client.set(f"{queue}:dlq", "not a stream")
    said = run("queues")

    assert (f"{queue}-b" in said.out, said.status) == (True, 3)
    assert f"{queue} on redis: redis: a key of this name holds something other" in said.err


def test_an_absent_dlq_has_length_zero(run: Run, queue: str) -> None:
    said = run("dlq", "length", "--queue", queue)

    assert (said.status, said.out) == (0, "0\n")


def test_what_was_published_is_shown_among_the_queues(run: Run, queue: str, fresh_redis: RedisServer) -> None:
    published = run("publish", queue, '{"id": 1}', broker=fresh_redis.url)
    queues = run("queues", "--json", broker=fresh_redis.url)  # all of them: others leave strange ones behind

    assert published.status == 0
    assert queue in queues.out


@pytest.mark.parametrize(
    "words",
    [("queues",), ("dlq", "length", "--queue", "orders"), ("publish", "orders", "1"), ("doctor",)],
    ids=lambda words: words[0],
)
def test_an_unreachable_server_is_one_line_and_a_status(run: Run, words: tuple[str, ...]) -> None:
    said = run(*words, broker="redis://shop:s3cret@127.0.0.1:1")

    assert said.status == 3
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert said.err.startswith("redrive: redis: no answer from the server")
    assert "s3cret" not in said.err


def test_the_doctor_ends_with_the_status_of_what_it_found(run: Run) -> None:
    said = run("doctor")

    assert said.status == 1
    assert "appendonly is off" in said.out
