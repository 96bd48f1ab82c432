import dataclasses
import re
import socket
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from redrive.core import event as events
from redrive.core.attempt import Attempt
from redrive.core.delivery import Delivery
from redrive.core.errors import ConfigError
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.outcome import RetryLater, Settlement
from redrive.core.reason import Reason
from redrive.observe.metrics import Metrics, serve_metrics
from redrive.observe.series import LONGEST, SERIES, VALUES
from redrive.observe.table import TABLE
from tests.servers.ports import free_port

AT = datetime(2026, 1, 2, tzinfo=UTC)
WHERE: dict[str, Any] = {"at": AT, "broker": "redis", "queue": "orders", "group": "shop"}
LABELS = {"broker": "redis", "queue": "orders", "group": "shop"}
ERROR = {"reason": "attempts_exhausted", "error_type": "TimeoutError", "error_code": "504"}
DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"
LETTER = DeadLetter(
    letter_id="l1",
    queue="orders",
    group="shop",
    payload=b"{}",
    payload_sha256="ab",
    reason=Reason.ATTEMPTS_EXHAUSTED,
    error_type="TimeoutError",
    error_code="504",
    retry_count=4,
    failed_at=AT,
)


class Counted:
    def __init__(self, *, label: str | None = None) -> None:
        self.registry = CollectorRegistry()
        self.emit = Metrics(self.registry, label=label)

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


def test_a_letter_is_counted_by_what_it_died_of(counted: Counted) -> None:
    counted.emit(events.LetterWritten(**WHERE, letter=LETTER))
    counted.emit(events.LetterWritten(**WHERE, letter=dataclasses.replace(LETTER, error_code=None)))

    assert counted.value("redrive_letters_total", **LABELS, **ERROR) == 1
    assert counted.value("redrive_letters_total", **LABELS, **ERROR | {"error_code": ""}) == 1


def test_letters_that_were_settled_together_are_counted_as_if_each_were_told_by_itself() -> None:
    letters = [
        dataclasses.replace(LETTER, retry_count=retries, task_type=task)
        for retries, task in ((1, "BUILD"), (4, "BUILD"), (4, "CHECK"))
    ]
    together, apart = Counted(label="task_type"), Counted(label="task_type")
    batch = events.BatchSettled(**WHERE, letters=letters)
    together.emit(batch)
    for event in batch.written():
        apart.emit(event)

    for counted in (together, apart):
        assert counted.value("redrive_letters_total", **LABELS, **ERROR, task_type="BUILD") == 2
        assert counted.value("redrive_letters_total", **LABELS, **ERROR, task_type="CHECK") == 1
        assert counted.value("redrive_failed_attempts_count", **LABELS, outcome="dlq") == 3
        assert counted.value("redrive_failed_attempts_sum", **LABELS, outcome="dlq") == 9


def test_failed_attempts_are_counted_by_how_it_ended(counted: Counted) -> None:
    counted.emit(events.BatchSettled(**WHERE, acked=10, after_failures={1: 2, 3: 1}))
    counted.emit(events.LetterWritten(**WHERE, letter=LETTER))

    def attempts(outcome: str) -> list[float | None]:
        labels = {**LABELS, "outcome": outcome}
        bounds = ("0.0", "1.0", "2.0", "3.0", "4.0", "5.0", "+Inf")
        return [counted.value("redrive_failed_attempts_bucket", **labels, le=bound) for bound in bounds]

    assert attempts("success") == [7, 9, 9, 10, 10, 10, 10]
    assert attempts("dlq") == [0, 0, 0, 0, 1, 1, 1]
    assert counted.value("redrive_failed_attempts_sum", **LABELS, outcome="success") == 5
    assert counted.value("redrive_failed_attempts_count", **LABELS, outcome="dlq") == 1


def test_runs_of_the_handler_are_counted_with_their_time(counted: Counted) -> None:
    counted.emit(events.BatchSettled(**WHERE, runs=[(0.0005, 200), (0.3, 1), (1000.0, 1)]))

    values = [
        counted.value("redrive_handler_seconds_bucket", **LABELS, le=bound)
        for bound in ("0.001", "0.25", "0.5", "300.0", "+Inf")
    ]
    assert values == [200, 200, 201, 201, 202]
    assert counted.value("redrive_handler_seconds_sum", **LABELS) == pytest.approx(1000.4)


def test_a_value_on_a_bound_is_counted_below_it(counted: Counted) -> None:
    counted.emit(events.BatchSettled(**WHERE, late_by=[1.0, 1.5]))

    assert counted.value("redrive_lateness_seconds_bucket", **LABELS, le="1.0") == 1
    assert counted.value("redrive_lateness_seconds_count", **LABELS) == 2


def test_letters_are_counted_by_a_label_of_the_users_own() -> None:
    counted = Counted(label="task_type")
    for letter in (
        dataclasses.replace(LETTER, task_type="BUILD"),
        dataclasses.replace(LETTER, context={"task_type": 7}),
        LETTER,
    ):
        counted.emit(events.LetterWritten(**WHERE, letter=letter))

    values = [
        counted.value("redrive_letters_total", **LABELS, **ERROR, task_type=value) for value in ("BUILD", "7", "", "X")
    ]
    assert values == [1, 1, 1, None]


def test_a_label_of_the_users_own_is_never_the_text_of_an_error_or_a_payload() -> None:
    for name in ("error_message", "payload", "letter_id"):
        counted = Counted(label=name)
        counted.emit(events.LetterWritten(**WHERE, letter=dataclasses.replace(LETTER, error_message="secret")))

        assert counted.value("redrive_letters_total", **LABELS, **ERROR, **{name: ""}) == 1


@pytest.mark.parametrize("label", ["queue", "error_type", "__name__", "task-type", "", "2nd", "type\n"])
def test_what_cannot_be_a_label_is_refused(label: str) -> None:
    with pytest.raises(ConfigError, match=r"^metrics\.label: expected a name"):
        Metrics(CollectorRegistry(), label=label)


def test_letters_that_a_failed_call_would_have_written_are_counted(counted: Counted) -> None:
    fault = events.BrokerFaulted(**WHERE, call="settle", why="", error_type="BrokerUnavailable", letters=[LETTER] * 3)
    counted.emit(fault)

    labels = {**LABELS, **ERROR, "failure_reason": "BrokerUnavailable", "then": "retried"}
    assert counted.value("redrive_letters_refused_total", **labels) == 3


def test_what_was_collected_says_what_became_of_redriven_letters(counted: Counted) -> None:
    counted.emit(events.LettersCollected(**WHERE, new=5, reopened=2, resolved=3, known=1, incidents=4))
    counted.emit(events.RedriveUnheard(**WHERE, redrive_id="r", letters=6))
    counted.emit(events.RedriveUnheard(**WHERE, redrive_id="r", letters=7, quiet=True))
    counted.emit(events.RedriveHalted(at=AT, queue="", redrive_id="r", state="stopped"))

    place = {"broker": "redis", "queue": "orders"}
    outcomes = ("succeeded", "failed", "unconfirmed", "quiet")
    seen = [counted.value("redrive_redriven_letters_total", **place, outcome=outcome) for outcome in outcomes]
    assert seen == [3, 2, 6, 7]
    assert counted.value("redrive_collected_total", **place, result="new") == 5
    assert counted.value("redrive_incidents_opened_total", **place) == 4
    assert counted.value("redrive_redrives_total", outcome="stopped") == 1


def test_a_heartbeat_shows_what_is_in_flight_until_the_worker_stops(counted: Counted) -> None:
    counted.emit(events.WorkerBeat(**WHERE, in_flight=12, suspects=2))
    seen = [counted.value(f"redrive_{name}", **LABELS) for name in ("in_flight", "suspects_waiting")]
    counted.emit(events.WorkerStopped(**WHERE, owner="w"))

    assert seen == [12, 2]
    assert counted.value("redrive_in_flight", **LABELS) == 0


@pytest.mark.parametrize(
    ("event", "name", "labels"),
    [
        (
            events.HandlerFailed(**WHERE, message_id="7", attempt=1, error_type="KeyError", why="", retry_in=1.0),
            "redrive_retries_total",
            {"error_type": "KeyError"},
        ),
        (
            events.LetterRefused(**WHERE, message_id="7", payload_sha256="ab", why="disk full", letter=LETTER),
            "redrive_letters_refused_total",
            {**ERROR, "failure_reason": "refused", "then": "held"},
        ),
        (
            events.LetterRefused(
                **WHERE, message_id="7", payload_sha256="ab", why="full", failure_reason="Full", dropped=True
            ),
            "redrive_letters_refused_total",
            {"reason": "", "error_type": "", "error_code": "", "failure_reason": "Full", "then": "dropped"},
        ),
        (
            events.MessageDropped(
                **WHERE, message_id="7", payload_sha256="ab", reason="rejected", error_type="KeyError"
            ),
            "redrive_messages_dropped_total",
            {"reason": "rejected", "error_type": "KeyError", "error_code": ""},
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


def test_values_made_up_without_end_are_counted_together(counted: Counted) -> None:
    for number in range(VALUES + 5):
        letter = dataclasses.replace(LETTER, error_type=f"Made{number}", error_code=f"c{number}")
        counted.emit(events.LetterWritten(**WHERE, letter=letter))

    labels = {**LABELS, "reason": "attempts_exhausted"}
    assert counted.value("redrive_letters_total", **labels, error_type="Made0", error_code="c0") == 1
    assert counted.value("redrive_letters_total", **labels, error_type="other", error_code="other") == 5


def test_combinations_made_up_without_end_are_counted_together() -> None:
    counted = Counted(label="task_type")
    many = [(kind, code) for kind in range(100) for code in range(100)]
    for kind, code in many:
        letter = dataclasses.replace(LETTER, task_type=f"t{kind}", error_code=f"c{code}")
        counted.emit(events.LetterWritten(**WHERE, letter=letter))

    (metric,) = [one for one in counted.registry.collect() if one.name == "redrive_letters"]
    samples = [one for one in metric.samples if one.name == "redrive_letters_total"]
    assert len(samples) <= SERIES + 1
    assert sum(one.value for one in samples) == len(many)


@pytest.mark.parametrize(
    "hostile",
    ["\x00", 'a"b\\', "one\ntwo", "\ud800", "x" * 1_000_000, "\x1b[31m", "}\nredrive_up 1\n"],
    ids=["nul", "quote", "line break", "surrogate", "a million", "escape", "injection"],
)
def test_whatever_a_label_holds_the_page_can_be_read(hostile: str) -> None:
    counted = Counted(label="task_type")
    letter = dataclasses.replace(LETTER, error_type=hostile, error_code=hostile, task_type=hostile)
    where = {**WHERE, "queue": hostile}
    counted.emit(events.LetterWritten(**where, letter=letter))
    counted.emit(events.LetterWritten(**where, letter=letter))

    page = generate_latest(counted.registry).decode()
    (sample,) = [
        sample
        for metric in text_string_to_metric_families(page)
        for sample in metric.samples
        if sample.name == "redrive_letters_total"
    ]
    assert sample.value == 2
    assert sample.labels["error_type"] == sample.labels["task_type"] == sample.labels["queue"]
    assert sample.labels["error_type"].isprintable()
    assert len(sample.labels["error_type"]) <= 4 * LONGEST


def test_every_event_of_the_core_that_can_be_counted_is_counted() -> None:
    kinds = {kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, events.Event)}
    counted = set(Metrics(CollectorRegistry())._count)  # noqa: SLF001

    assert kinds - counted == {events.Event}


def test_the_page_on_metrics_says_what_the_table_says() -> None:
    rows = re.findall(r"^\| `(redrive_\w+)` \| (\w+) \| (.*?) \| (.*) \|$", DOCS.read_text("utf-8"), re.MULTILINE)

    assert rows == [
        (row.name, row.kind, ", ".join(f"`{label}`" for label in row.labels) or "-", row.help) for row in TABLE
    ]


def test_metrics_are_answered_over_http_until_stopped(counted: Counted) -> None:
    port = free_port()
    counted.emit(events.BatchSettled(**WHERE, acked=7))

    stop = serve_metrics(counted.registry, port)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
    finally:
        stop()

    assert 'redrive_settled_total{broker="redis",group="shop",outcome="acked",queue="orders"} 7.0' in text
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_failures_that_are_told_together_are_counted_by_their_type(counted: Counted) -> None:
    delivery = Delivery(Message("7", "orders", b""), "shop", AT)
    types = ("KeyError", "ValueError", "KeyError")
    items = [Settlement(delivery, RetryLater(1), Attempt(1, AT, AT, error_type)) for error_type in types]

    counted.emit(events.BatchSettled(**WHERE, retried=4, again=[*items, Settlement(delivery, RetryLater(1))]))

    assert counted.value("redrive_retries_total", **LABELS, error_type="KeyError") == 2
    assert counted.value("redrive_retries_total", **LABELS, error_type="ValueError") == 1
