"""The page of metrics of a service that has seen everything, as Prometheus' own tool judges it."""

import subprocess
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from redrive.core import event as events
from redrive.core.letter import DeadLetter
from redrive.core.reason import Reason
from redrive.observe.metrics import Metrics
from redrive.observe.table import TABLE
from tests.servers.promtool import promtool

AT = datetime(2026, 1, 2, tzinfo=UTC)
WHERE: dict[str, Any] = {"at": AT, "broker": "redis", "queue": 'or"ders\n\x00', "group": "shop"}
LETTER = DeadLetter(
    letter_id="l1",
    queue="orders",
    payload=b"{}",
    payload_sha256="ab",
    reason=Reason.REJECTED,
    error_type="Time\nout\\Error\x00\ud800",
    error_code="5" * 1_000_000,
    task_type='BU"ILD',
    failed_at=AT,
)
EVENTS = (
    events.BatchSettled(**WHERE, acked=3, retried=1, runs=[(0.1, 3)], late_by=[1.0], after_failures={1: 1}),
    events.HandlerFailed(**WHERE, message_id="1", attempt=1, error_type="KeyError", why="", retry_in=1.0),
    events.LetterWritten(**WHERE, letter=LETTER),
    events.LetterRefused(**WHERE, message_id="1", payload_sha256="ab", why="full", letter=LETTER),
    events.MessageDropped(**WHERE, message_id="1", payload_sha256="ab", reason="rejected", error_type="KeyError"),
    events.SuspectTaken(**WHERE, message_id="1", crashes=1),
    events.DeliveryLost(**WHERE, message_id="1"),
    events.ConsumerPaused(**WHERE, why="outage"),
    events.WorkerBeat(**WHERE, in_flight=3, suspects=1),
    events.WorkerDied(**WHERE, owner="w", text="killed by SIGKILL"),
    events.BrokerFaulted(**WHERE, call="settle", why="away"),
    events.CollectorLagged(**WHERE, waiting=3, seconds=1.5),
    events.AlertThresholdReached(**WHERE, letters=100, window=3600),
    events.LettersCollected(**WHERE, new=1, reopened=1, resolved=1, incidents=1),
    events.RedriveUnheard(**WHERE, redrive_id="r", letters=1),
    events.RedriveHalted(**WHERE, redrive_id="r", state="done"),
    events.StoreCalled(**WHERE, call="collect", seconds=0.01),
    events.DlqSized(**WHERE, entries=4),
    events.LettersSized(**WHERE, letters=4, oldest=10.0),
    events.PauseSeen(**WHERE, paused=True),
    events.SizingFailed(**WHERE, place="store", why="away"),
    events.AlertsTold(**WHERE, notifier="alertmanager", firing=2, resolved=1),
    events.NotifierFailed(**WHERE, notifier="alertmanager", alerts=3, why="away"),
)


def test_the_page_is_what_prometheus_expects_whatever_its_labels_hold() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry, label="task_type")
    for event in EVENTS:
        metrics(event)
    page = generate_latest(registry)
    found = subprocess.run([promtool(), "check", "metrics"], input=page, capture_output=True, check=False, timeout=60)

    missing = [row.name for row in TABLE if f"\n{row.name}".encode() not in page]
    assert (found.returncode, found.stdout + found.stderr) == (0, b"")
    assert missing == []
