"""What our lines say: names that machines look for, and what a line is about."""

import io
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog

import redrive
from redrive import testing
from redrive.core import event as events
from redrive.core.attempt import Attempt
from redrive.core.delivery import Delivery
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.outcome import RetryLater, Settlement
from redrive.core.place import COLLECTORS
from redrive.core.reason import Reason
from redrive.observe.event_log import EventLog
from redrive.observe.logs import set_up_logs
from redrive.worker.current import current_delivery

AT = datetime(2026, 1, 2, tzinfo=UTC)
WHERE: dict[str, Any] = {"at": AT, "queue": "orders", "group": "shop"}
TRACE = "0af7651916cd43dd8448eb211c80319c"
HEADERS = (("traceparent", f"00-{TRACE}-b7ad6b7169203331-01".encode()),)
LETTER = DeadLetter(
    letter_id="l1",
    queue="orders",
    original_message_id="7",
    payload=b"s3cret",
    payload_sha256="ab12",
    reason=Reason.ATTEMPTS_EXHAUSTED,
    error_type="TimeoutError",
    error_code="slow",
    error_message="s3cret",
    retry_count=4,
    user_id="u1",
    trace_id=TRACE,
    failed_at=AT,
)


@pytest.fixture
def said() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    set_up_logs(stream=stream, delivery=current_delivery)
    yield stream
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (events.HandlerFailed(**WHERE, message_id="7", attempt=1, error_type="E", why="", retry_in=1), "message_retry"),
        (events.LetterWritten(**WHERE, letter=LETTER), "dlq_published"),
        (events.LetterRefused(**WHERE, message_id="7", payload_sha256="ab", why="full"), "dlq_publish_failed"),
        (events.BrokerFaulted(**WHERE, call="settle", why="away", letters=[LETTER]), "dlq_publish_failed"),
        (events.BrokerFaulted(**WHERE, call="fetch", why="away"), "broker_fault"),
        (events.WorkerStarted(**WHERE, owner="w"), "consumer_started"),
        (events.WorkerStarted(**{**WHERE, "group": COLLECTORS}, owner="w"), "dlq_consumer_started"),
        (events.WorkerStopped(**{**WHERE, "group": COLLECTORS}, owner="w"), "dlq_consumer_stopped"),
        (events.ConsumerPaused(**WHERE, why="outage"), "consumer_paused"),
        (events.RedriveHalted(**WHERE, redrive_id="r", state="done"), "redrive_halted"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_line_has_a_name_that_never_changes(said: io.StringIO, event: events.Event, name: str) -> None:
    EventLog()(event)

    (line,) = lines(said)
    assert (line["event_name"], line["queue"]) == (name, "orders")


def test_a_retry_is_told_with_its_attempt_delay_and_error(said: io.StringIO) -> None:
    delivery = Delivery(Message("7", "orders", b"s3cret", HEADERS), "shop", AT, letter_id="l1")
    item = Settlement(delivery, RetryLater(2, "later"), Attempt(3, AT, AT, "KeyError", "s3cret"))

    EventLog()(events.BatchSettled(**WHERE, retried=1, again=[item]))

    (line,) = lines(said)
    assert line["level"] == "info"
    assert (line["attempt"], line["delay"], line["error_type"]) == (3, 2.0, "KeyError")
    assert (line["message_id"], line["letter_id"], line["trace_id"]) == ("7", "l1", TRACE)
    assert "s3cret" not in said.getvalue()


@pytest.mark.parametrize(
    "event",
    [events.LetterWritten(**WHERE, letter=LETTER), events.BatchSettled(**WHERE, dead=1, letters=[LETTER])],
    ids=["by itself", "with its settle call"],
)
def test_giving_up_is_told_with_reason_error_and_user(said: io.StringIO, event: events.Event) -> None:
    EventLog()(event)

    (line,) = lines(said)
    assert line["level"] == "warning"
    assert (line["reason"], line["error_type"], line["user_id"]) == ("attempts_exhausted", "TimeoutError", "u1")
    assert (line["message_id"], line["letter_id"], line["trace_id"]) == ("7", "l1", TRACE)
    assert "s3cret" not in said.getvalue()


def test_a_letter_that_cannot_be_written_is_an_error_that_says_which_and_why(said: io.StringIO) -> None:
    payload_sha256 = LETTER.payload_sha256
    other = replace(LETTER, letter_id="l2", original_message_id="8")
    EventLog()(events.LetterRefused(**WHERE, message_id="7", payload_sha256=payload_sha256, why="full", letter=LETTER))
    EventLog()(events.BrokerFaulted(**WHERE, call="settle", why="away", error_type="OSError", letters=[LETTER, other]))

    refused, *faulted = lines(said)
    assert [line["letter_id"] for line in faulted] == ["l1", "l2"]
    assert [line["message_id"] for line in (refused, *faulted)] == ["7", "7", "8"]
    assert [line["why"] for line in (refused, *faulted)] == ["full", "away", "away"]
    assert [line.get("failure_reason") for line in (refused, *faulted)] == [None, "OSError", "OSError"]
    for line in (refused, *faulted):
        assert (line["level"], line["trace_id"], line["reason"]) == ("error", TRACE, "attempts_exhausted")
        assert (line["error_type"], line["error_code"]) == ("TimeoutError", "slow")
        assert line["payload_sha256"] == payload_sha256
    assert "s3cret" not in said.getvalue()


def test_what_a_letter_does_not_have_is_not_said(said: io.StringIO) -> None:
    EventLog()(events.LetterWritten(**WHERE, letter=replace(LETTER, user_id=None, trace_id=None)))

    (line,) = lines(said)
    assert {"user_id", "trace_id"} & line.keys() == set()


async def test_a_handlers_own_line_tells_which_message_it_is_about(said: io.StringIO) -> None:
    app = redrive.App("memory://", name="shop")
    log = logging.getLogger("shop")

    @app.consumer("orders", retry=0, breaker=None)
    async def charge(body: bytes) -> None:
        log.warning("charging")
        raise ValueError

    @app.consumer("mails", retry=[1], breaker=None)
    def send(body: bytes, delivery: redrive.Delivery) -> None:
        log.warning("sending")
        if delivery.attempt == 1:
            raise ValueError

    async with testing.run(app) as shop:
        order = await shop.publish("orders", b"", headers=HEADERS)
        await shop.drain()
        dlq = shop.broker.dead_letters("orders")
        (entry,) = await dlq.peek(1)
        again = await dlq.redrive(entry.entry_id)
        await shop.drain()
        mail = await shop.publish("mails", b"")
        await shop.drain()

    charged = [line for line in lines(said) if line["message"] == "charging"]
    sent = [line for line in lines(said) if line["message"] == "sending"]
    assert [(line["queue"], line["message_id"], line["trace_id"]) for line in charged] == [
        ("orders", order, TRACE),
        ("orders", again, TRACE),
    ]
    assert [line.get("letter_id") for line in charged] == [None, entry.letter.letter_id]
    assert [(line["queue"], line["message_id"], line["attempt"]) for line in sent] == [
        ("mails", mail, 1),
        ("mails", mail, 2),
    ]
    assert current_delivery() is None
