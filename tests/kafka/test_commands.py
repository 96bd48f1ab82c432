"""The command line, pointed at Kafka."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kafka.scenes import begin_topic, produce
from tests.servers.ports import free_port
from tests.unit.cli.conftest import Said, Shop

SPRING = [
    ("kafka_dlt-exception-fqcn", b"java.lang.IllegalStateException"),
    ("kafka_dlt-exception-message", b"no customer"),
]

Run = Callable[..., Said]


@pytest.fixture
def run(kafka_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    shop = Shop(tmp_path, capsys)

    def run(*words: str, broker: str = kafka_url) -> Said:
        return shop.run(*words, "--broker", broker)

    return run


def test_the_dlq_of_others_is_worked_on_without_any_store(run: Run, kafka_url: str, queue: str) -> None:
    begin_topic(kafka_url, f"{queue}.dlq")
    produce(kafka_url, f"{queue}.dlq", *({"value": b'{"id": 1}', "headers": SPRING} for _ in range(3)))
    length = run("dlq", "length", "--queue", queue)
    peek = run("dlq", "peek", "--queue", queue, "--count", "2", "--json")
    redriven = run("dlq", "redrive", "--queue", queue, "0-0")
    removed = run("dlq", "remove", "--queue", queue, "0-1", "--yes")
    again = run("dlq", "redrive", "--queue", queue, "0-0")

    assert (length.out, len(peek.out.splitlines())) == ("3\n", 2)
    assert (redriven.status, removed.status, again.status) == (0, 0, 4)
    assert run("dlq", "length", "--queue", queue).out == "1\n"


def test_what_was_published_is_shown_among_the_queues(run: Run, queue: str) -> None:
    published = run("publish", queue, '{"id": 1}')
    queues = run("queues", "--json")

    assert published.status == 0
    assert queue in queues.out


def test_an_unreachable_broker_is_one_line_and_a_status(run: Run) -> None:
    said = run("dlq", "length", "--queue", "orders", broker=f"kafka://127.0.0.1:{free_port()}")

    assert (said.status, said.out) == (3, "")
    assert len(said.err.splitlines()) == 1
    assert said.err.startswith("redrive: kafka: no service for now")


def test_the_doctor_names_the_risk_of_a_lone_broker(run: Run, queue: str) -> None:
    run("publish", queue, '{"id": 1}')
    said = run("doctor")

    assert "offsets.retention.minutes" in said.out
