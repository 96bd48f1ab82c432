"""The command line, pointed at RabbitMQ."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from redrive.brokers.rabbitmq import RabbitBroker
from redrive.clock import SystemClock
from redrive.core.message import Message
from tests.servers.jumping_time import JumpingClock
from tests.servers.ports import free_port
from tests.servers.rabbitmq import RabbitServer
from tests.unit.cli.conftest import Said, Shop

Run = Callable[..., Said]


@pytest.fixture
def url(jumping_rabbitmq: tuple[RabbitServer, JumpingClock]) -> str:
    return jumping_rabbitmq[0].url


@pytest.fixture
def run(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    shop = Shop(tmp_path, capsys)

    def run(*words: str, broker: str = url) -> Said:
        return shop.run(*words, "--broker", broker)

    return run


def test_the_dlq_of_others_is_worked_on_without_any_store(run: Run, url: str) -> None:
    queue = f"orders-{uuid4().hex[:12]}"
    _publish(url, f"{queue}.dlq", 3)
    length = run("dlq", "length", "--queue", queue)
    peek = run("dlq", "peek", "--queue", queue, "--count", "2", "--json")
    first, second = (json.loads(line)["entry_id"] for line in peek.out.splitlines())
    redriven = run("dlq", "redrive", "--queue", queue, first)
    removed = run("dlq", "remove", "--queue", queue, second, "--yes")
    again = run("dlq", "redrive", "--queue", queue, first)

    assert length.out == "3\n"
    assert (redriven.status, removed.status, again.status) == (0, 0, 4)
    assert run("dlq", "length", "--queue", queue).out == "1\n"


def test_what_was_published_is_shown_among_the_queues(run: Run) -> None:
    queue = f"orders-{uuid4().hex[:12]}"
    published = run("publish", queue, '{"id": 1}')
    queues = run("queues", "--json")

    assert published.status == 0
    assert queue in queues.out


def test_an_unreachable_broker_is_one_line_and_a_status(run: Run) -> None:
    said = run("dlq", "length", "--queue", "orders", broker=f"amqp://127.0.0.1:{free_port()}")

    assert (said.status, said.out) == (3, "")
    assert len(said.err.splitlines()) == 1
    assert said.err.startswith("redrive: rabbitmq: no service for now")


def test_the_doctor_says_what_the_server_is(run: Run) -> None:
    assert "RabbitMQ 3." in run("doctor").out


def _publish(url: str, queue: str, count: int) -> None:
    async def publish() -> None:
        broker = RabbitBroker(url, clock=SystemClock())
        await broker.publish(queue, [Message("", queue, b'{"id": 1}') for _ in range(count)])
        await broker.aclose()

    asyncio.run(publish())
