import dataclasses
import re
import socket
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from redrive.core import event as events
from redrive.core.attempt import Attempt
from redrive.core.delivery import Delivery
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.outcome import RetryLater, Settlement
from redrive.core.reason import Reason
from redrive.observe.metrics import ERROR_TYPES, TABLE, Metrics, serve_metrics

AT = datetime(2026, 1, 2, tzinfo=UTC)
WHERE: dict[str, Any] = {"at": AT, "queue": "orders", "group": "shop"}
LABELS = {"queue": "orders", "group": "shop"}
DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"
LETTER = DeadLetter(
    letter_id="l1",
    queue="orders",
    group="shop",
    payload=b"{}",
    payload_sha256="ab",
    reason=Reason.ATTEMPTS_EXHAUSTED,
    error_type="TimeoutError",
    retry_count=4,
    failed_at=AT,
)


class Counted:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.emit = Metrics(self.registry)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)


@pytest.fixture
def counted() -> Counted:
    return Counted()


def test_a_settle_batch_is_counted_by_outcome(counted: Counted) -> None:
    counted.emit(events.BatchSettled(**WHERE, acked=7, retried=2, dead=1))
    counted.emit(events.BatchSettled(**WHERE, acked=3, lost=1))

    assert counted.value("redrive_settled_total", **LABELS, outcome="acked") == 10
    assert counted.value("redrive_settled_total", **LABELS, outcome="retried") == 2
    assert counted.value("redrive_settled_total", **LABELS, outcome="dead") == 1
    assert counted.value("redrive_settled_total", **LABELS, outcome="lost") == 1
    assert counted.value("redrive_settled_total", **LABELS, outcome="refused") is None


def test_a_letter_is_counted_by_reason_and_error_type_with_its_attempts(counted: Counted) -> None:
    counted.emit(events.LetterWritten(**WHERE, letter=LETTER))

    labels = {**LABELS, "reason": "attempts_exhausted", "error_type": "TimeoutError"}
    assert counted.value("redrive_letters_total", **labels) == 1
    assert counted.value("redrive_letter_attempts_sum", **LABELS) == 4
    assert counted.value("redrive_letter_attempts_bucket", **LABELS, le="3.0") == 0
    assert counted.value("redrive_letter_attempts_bucket", **LABELS, le="4.0") == 1


@pytest.mark.parametrize(
    ("event", "name", "labels"),
    [
        (
            events.HandlerFailed(**WHERE, message_id="7", attempt=1, error_type="KeyError", why="", retry_in=1.0),
            "redrive_retries_total",
            {"error_type": "KeyError"},
        ),
        (
            events.LetterRefused(**WHERE, message_id="7", payload_sha256="ab", why="disk full"),
            "redrive_letters_refused_total",
            {"then": "held"},
        ),
        (
            events.LetterRefused(**WHERE, message_id="7", payload_sha256="ab", why="full", dropped=True),
            "redrive_letters_refused_total",
            {"then": "dropped"},
        ),
        (
            events.MessageDropped(
                **WHERE, message_id="7", payload_sha256="ab", reason="rejected", error_type="KeyError"
            ),
            "redrive_messages_dropped_total",
            {"reason": "rejected", "error_type": "KeyError"},
        ),
        (events.DeliveryLost(**WHERE, message_id="7"), "redrive_deliveries_lost_total", {}),
        (events.SuspectTaken(**WHERE, message_id="7", crashes=1), "redrive_suspects_total", {}),
        (
            events.BrokerFaulted(**WHERE, call="settle", why="locked"),
            "redrive_broker_faults_total",
            {"call": "settle"},
        ),
        (
            events.AlertThresholdReached(**WHERE, letters=100, window=3600),
            "redrive_alert_thresholds_total",
            {},
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, events.Event) else None,
)
def test_an_event_adds_one(counted: Counted, event: events.Event, name: str, labels: dict[str, str]) -> None:
    counted.emit(event)
    counted.emit(event)

    assert counted.value(name, **LABELS, **labels) == 2


def test_a_death_of_a_worker_is_counted_without_its_name(counted: Counted) -> None:
    counted.emit(events.WorkerDied(at=AT, queue="", owner="host-1-abc", text="killed by SIGKILL"))

    assert counted.value("redrive_worker_deaths_total") == 1


def test_the_gauge_says_whether_the_consumer_is_paused(counted: Counted) -> None:
    seen = []
    for event in (
        events.WorkerStarted(**WHERE, owner="w"),
        events.ConsumerPaused(**WHERE, why="an outage"),
        events.ConsumerResumed(**WHERE),
    ):
        counted.emit(event)
        seen.append(counted.value("redrive_consumer_paused", **LABELS))

    assert seen == [0, 1, 0]


def test_error_types_made_up_without_end_are_counted_together(counted: Counted) -> None:
    for number in range(ERROR_TYPES + 5):
        letter = dataclasses.replace(LETTER, error_type=f"Made{number}")
        counted.emit(events.LetterWritten(**WHERE, letter=letter))

    labels = {**LABELS, "reason": "attempts_exhausted"}
    assert counted.value("redrive_letters_total", **labels, error_type="Made0") == 1
    assert counted.value("redrive_letters_total", **labels, error_type="other") == 5


def test_every_event_of_the_core_that_can_be_counted_is_counted() -> None:
    kinds = {kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, events.Event)}
    counted = set(Metrics(CollectorRegistry())._count)  # noqa: SLF001

    assert kinds - counted == {events.Event, events.WorkerStopped}


def test_the_page_on_metrics_says_what_the_table_says() -> None:
    rows = re.findall(r"^\| `(redrive_\w+)` \| (\w+) \| (.*?) \| (.*) \|$", DOCS.read_text("utf-8"), re.MULTILINE)

    assert rows == [
        (row.name, row.kind, ", ".join(f"`{label}`" for label in row.labels) or "-", row.help) for row in TABLE
    ]


def test_metrics_are_answered_over_http_until_stopped(counted: Counted) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    counted.emit(events.BatchSettled(**WHERE, acked=7))

    stop = serve_metrics(counted.registry, port)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
    finally:
        stop()

    assert 'redrive_settled_total{group="shop",outcome="acked",queue="orders"} 7.0' in text
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_failures_that_are_told_together_are_counted_by_their_type(counted: Counted) -> None:
    delivery = Delivery(Message("7", "orders", b""), "shop", AT)
    types = ("KeyError", "ValueError", "KeyError")
    items = [Settlement(delivery, RetryLater(1), Attempt(1, AT, AT, error_type)) for error_type in types]

    counted.emit(events.BatchSettled(**WHERE, retried=4, again=[*items, Settlement(delivery, RetryLater(1))]))

    assert counted.value("redrive_retries_total", **LABELS, error_type="KeyError") == 2
    assert counted.value("redrive_retries_total", **LABELS, error_type="ValueError") == 1
