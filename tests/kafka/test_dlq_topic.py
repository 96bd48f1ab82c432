"""DLQs on Kafka as the settings want them."""

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from redrive import wiring
from redrive.app import App
from redrive.brokers.kafka import DlqTopic, KafkaBroker
from redrive.clock import SystemClock
from redrive.core.errors import ConfigError
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.testing.conformance.bench import Bench
from tests.kafka.scenes import begin_topic, bench_on, take, values_in
from tests.unit.core.letters import a_letter

Made = Callable[..., KafkaBroker]


@pytest.fixture
async def made(kafka_url: str) -> AsyncIterator[Made]:
    opened: list[KafkaBroker] = []

    def broker(**settings: Any) -> KafkaBroker:
        opened.append(KafkaBroker(kafka_url, clock=SystemClock(), dlq=DlqTopic(**settings)))
        return opened[-1]

    yield broker
    for one in opened:
        await one.aclose()


def shape(broker: KafkaBroker, topic: str) -> tuple[int, dict[str, str]]:
    topics = broker._office.topics  # noqa: SLF001
    wanted = ("retention.ms", "retention.bytes", "compression.type", "max.message.bytes")
    return topics.partitions(topic), {name: topics.settings([topic])[topic][name] for name in wanted}


async def test_a_dlq_is_begun_as_the_seed_has_it_unless_told_otherwise(made: Made, queue: str) -> None:
    broker = made()

    await broker.dead_letters(queue).send(a_letter(queue=queue))

    assert shape(broker, f"{queue}.dlq") == (
        3,
        {
            "retention.ms": f"{30 * 24 * 3600 * 1000}",
            "retention.bytes": "-1",
            "compression.type": "snappy",
            "max.message.bytes": "2097152",
        },
    )


async def test_a_dlq_is_begun_as_it_is_told(made: Made, queue: str) -> None:
    broker = made(name="graves.{queue}", partitions=1, replication=1, retention=None, compression="zstd", largest=3_000)

    await broker.dead_letters(queue).send(a_letter(queue=queue))

    assert shape(broker, f"graves.{queue}") == (
        1,
        {
            "retention.ms": "-1",
            "retention.bytes": "-1",
            "compression.type": "zstd",
            "max.message.bytes": "3000",
        },
    )


@pytest.mark.parametrize(("form", "room"), [("fields", 3_000_000), ("embedded", 4_000_000)])
async def test_a_dlq_has_room_for_the_letter_of_the_largest_message(
    made: Made, kafka_url: str, queue: str, form: str, room: int
) -> None:
    begin_topic(kafka_url, queue, **{"max.message.bytes": "3000000"})
    broker = made(form=form)

    await broker.dead_letters(queue).send(a_letter(queue=queue))

    assert shape(broker, f"{queue}.dlq")[1]["max.message.bytes"] == f"{room + 262_144}"


async def dead(broker: KafkaBroker, queue: str, body: bytes) -> tuple[Bench, DeadLetter]:
    """A message that was given up, and its letter as it is found in the DLQ."""
    bench = bench_on(broker, queue)
    worker = await bench.worker()
    await broker.publish(queue, [Message("", queue, body, (("tenant", b"\xff"),), b"k")])
    (delivery,) = await take(worker, 1)
    await worker.settle([bench.give_up(delivery, worker)])
    (entry,) = await broker.dead_letters(queue).peek()
    await worker.aclose()
    return bench, entry.letter


async def test_an_embedded_letter_is_the_ticket_with_what_the_seed_says_of_its_failure(
    made: Made, kafka_url: str, queue: str
) -> None:
    _, letter = await dead(made(form="embedded"), queue, b'{"ticket_id": "T-7", "task_type": "BUILD" }')

    ((key, value),) = values_in(kafka_url, f"{queue}.dlq")
    document = json.loads(value or b"")
    metadata = document.pop("dlq_metadata")
    assert (key, document) == (b"k", {"ticket_id": "T-7", "task_type": "BUILD"})
    assert (metadata["error_type"], metadata["original_error"]) == (letter.error_type, letter.error_message)
    assert metadata["retry_count"] == letter.retry_count
    for name in ("last_failure_timestamp", "dlq_published_at"):
        assert timedelta() <= SystemClock().now() - _instant(metadata[name]) < timedelta(hours=1)


@pytest.mark.parametrize("body", [b'{"ticket_id": "T-7" }', b"\x00\xff no JSON"])
async def test_an_embedded_letter_gives_the_message_back_byte_for_byte(made: Made, queue: str, body: bytes) -> None:
    broker = made(form="embedded")
    bench, letter = await dead(broker, queue, body)
    assert (letter.payload, letter.key, letter.headers) == (body, b"k", (("tenant", b"\xff"),))
    (entry,) = await broker.dead_letters(queue).peek()

    await broker.dead_letters(queue).redrive(entry.entry_id)

    (again,) = await take(await bench.worker(), 1)
    assert (again.message.body, again.message.key, again.message.headers) == (body, b"k", (("tenant", b"\xff"),))
    assert (again.letter_id, again.generation) == (letter.letter_id, 1)


def _instant(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, UTC)


# ------------------------------------------------------------------------------------------------ the settings


async def test_the_names_of_the_seed_are_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_DLQ_TOPIC", "execution.tickets.dlq")
    monkeypatch.setenv("KAFKA_MAX_RETRIES_BEFORE_DLQ", "3")
    app = App("kafka://127.0.0.1:1", name="worker-agents")

    app.consumer("execution.tickets")(_handle)
    app.consumer("others", retry=[1], dlq="mine")(_handle)

    seeds, own = app.consumers
    assert (seeds.treatment.retry.max_attempts, seeds.dlq) == (3, "execution.tickets.dlq")
    assert (own.treatment.retry.max_attempts, own.dlq) == (2, "mine")
    async with app:
        assert app.broker.dead_letters("anything").name == "execution.tickets.dlq"
        assert wiring.collector(app.broker, _NO_STORE)._dlqs == {"execution.tickets.dlq": "execution.tickets"}  # noqa: SLF001


SETTINGS = """
[kafka.dlq]
topic = "graves.{queue}"
partitions = 7
replication = 2
retention = "unlimited"
compression = "zstd"
max_message = "3MB"
form = "embedded"
group = "worker-agents-dlq"

[kafka.attempts]
redis = "redis://127.0.0.1:1"
prefix = "ticket"
field = "ticket_id"
"""


async def test_what_the_file_says_reaches_the_broker_and_the_counter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "redrive.toml").write_text(SETTINGS, "utf-8")
    monkeypatch.chdir(tmp_path)
    broker: Any = wiring.connect("kafka://127.0.0.1:1")
    told = broker._id_of(Message("m", "orders", b'{"ticket_id": "T-7"}'))  # noqa: SLF001

    assert broker._dlq == DlqTopic(  # noqa: SLF001
        name="graves.{queue}",
        partitions=7,
        replication=2,
        retention=None,
        compression="zstd",
        largest=3_000_000,
        form="embedded",
        group="worker-agents-dlq",
    )
    assert told == "T-7"
    assert broker._counter._prefix == "ticket"  # noqa: SLF001
    await broker.aclose()


def test_they_are_none_of_the_business_of_other_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_DLQ_TOPIC", "execution.tickets.dlq")
    monkeypatch.setenv("KAFKA_MAX_RETRIES_BEFORE_DLQ", "9")
    app = App("memory://", name="shop")

    app.consumer("orders")(_handle)

    assert (app.consumers[0].treatment.retry.max_attempts, app.consumers[0].dlq) == (4, None)


def test_a_name_that_no_dlq_can_have_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_DLQ_TOPIC", "{topic}.dlq")

    with pytest.raises(ConfigError, match=r"kafka\.dlq\.topic: .*expected a queue name"):
        App("kafka://127.0.0.1:1", name="shop").consumer("orders")


async def _handle(body: bytes) -> None:
    pass


_NO_STORE: Any = None
