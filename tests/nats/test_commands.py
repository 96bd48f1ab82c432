"""The command line, pointed at NATS."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import nats
import pytest

from tests.nats.scenes import begin_stream
from tests.servers.ports import free_port
from tests.unit.cli.conftest import Said, Shop

Run = Callable[..., Said]


@pytest.fixture
def run(nats_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    shop = Shop(tmp_path, capsys)

    def run(*words: str, broker: str = nats_url) -> Said:
        return shop.run(*words, "--broker", broker)

    return run


async def _letters_of_others(url: str, queue: str) -> None:
    client = await nats.connect(url)
    await begin_stream(client, f"dead-{queue}", f"{queue}.dlq", allow_direct=True)
    for number in range(3):
        await client.request(f"{queue}.dlq", b'{"id": %d}' % number, headers={"error": "no customer"})
    await client.close()


def test_the_dlq_of_others_is_worked_on_without_any_store(run: Run, nats_url: str, queue: str) -> None:
    asyncio.run(_letters_of_others(nats_url, queue))
    length = run("dlq", "length", "--queue", queue)
    peek = run("dlq", "peek", "--queue", queue, "--count", "2", "--json")
    redriven = run("dlq", "redrive", "--queue", queue, "1")
    removed = run("dlq", "remove", "--queue", queue, "2", "--yes")
    again = run("dlq", "redrive", "--queue", queue, "1")

    assert (length.out, len(peek.out.splitlines())) == ("3\n", 2)
    assert (redriven.status, removed.status, again.status) == (0, 0, 4)
    assert run("dlq", "length", "--queue", queue).out == "1\n"


def test_what_was_published_is_shown_among_the_queues(run: Run, queue: str) -> None:
    published = run("publish", queue, '{"id": 1}')
    queues = run("queues", "--json")

    assert published.status == 0
    assert queue in queues.out


def test_an_unreachable_server_is_one_line_and_a_status(run: Run) -> None:
    said = run("dlq", "length", "--queue", "orders", broker=f"nats://127.0.0.1:{free_port()}")

    assert (said.status, said.out) == (3, "")
    assert len(said.err.splitlines()) == 1
    assert said.err.startswith("redrive: nats: no service for now")


def test_the_doctor_names_the_risks(run: Run, queue: str) -> None:
    run("publish", queue, '{"id": 1}')
    said = run("doctor")

    assert "one copy only" in said.out
    assert "sync_interval" in said.out
