import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog

from redrive.core import event as events
from redrive.core.attempt import Attempt
from redrive.core.delivery import Delivery
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.outcome import RetryLater, Settlement
from redrive.core.reason import Reason
from redrive.observe.event_log import EventLog
from redrive.observe.logs import set_up_logs

AT = datetime(2026, 1, 2, tzinfo=UTC)
WHERE: dict[str, Any] = {"at": AT, "queue": "orders", "group": "shop"}
LETTER = DeadLetter(
    letter_id="l1",
    queue="orders",
    group="shop",
    original_message_id="7",
    payload=b"card 4111 1111 1111 1111",
    payload_sha256="ab12",
    reason=Reason.INVALID,
    error_type="ValueError",
    error_message="card 4111 1111 1111 1111 is not a number",
    retry_count=1,
    failed_at=AT,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_off_a_terminal_a_line_is_json() -> None:
    stream = io.StringIO()
    set_up_logs(stream=stream)

    EventLog()(events.WorkerDied(at=AT, queue="", owner="w1", text="killed by SIGKILL"))

    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "message": "worker died",
        "level": "error",
        "event_name": "worker_died",
        "owner": "w1",
        "text": "killed by SIGKILL",
    }


def test_on_a_terminal_a_line_is_text_with_colour_unless_it_is_not_wanted() -> None:
    shown = {}
    for color in (True, False):
        stream = Terminal()
        set_up_logs(stream=stream, color=color)
        EventLog()(events.ConsumerResumed(**WHERE))
        shown[color] = stream.getvalue()

    assert "consumer resumed" in shown[True]
    assert "\x1b[" in shown[True]
    assert "\x1b[" not in shown[False]
    assert "queue=orders" in shown[False]


def test_the_form_can_be_chosen() -> None:
    stream = Terminal()
    set_up_logs(stream=stream, form="json")

    EventLog()(events.ConsumerResumed(**WHERE))

    assert lines(stream)[0]["message"] == "consumer resumed"


def test_a_letter_is_a_warning_that_names_no_payload_and_no_error_text() -> None:
    stream = io.StringIO()
    set_up_logs(stream=stream)

    EventLog()(events.LetterWritten(**WHERE, letter=LETTER))

    (line,) = lines(stream)
    assert "4111" not in stream.getvalue()
    assert (line["level"], line["message_id"], line["attempt"]) == ("warning", "7", 1)
    assert (line["letter_id"], line["reason"], line["payload_sha256"]) == ("l1", "invalid", "ab12")


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (events.BatchSettled(**WHERE, acked=1), "debug"),
        (
            events.HandlerFailed(**WHERE, message_id="7", attempt=1, error_type="E", why="", retry_in=1),
            "info",
        ),
        (events.LetterRefused(**WHERE, message_id="7", payload_sha256="ab", why="full"), "error"),
        (
            events.MessageDropped(**WHERE, message_id="7", payload_sha256="ab", reason="r", error_type="E"),
            "warning",
        ),
        (events.SuspectTaken(**WHERE, message_id="7", crashes=1), "warning"),
        (events.DeliveryLost(**WHERE, message_id="7"), "warning"),
        (events.ConsumerPaused(**WHERE, why="outage"), "warning"),
        (events.ConsumerResumed(**WHERE), "info"),
        (events.WorkerStarted(**WHERE, owner="w"), "info"),
        (events.WorkerStopped(**WHERE, owner="w"), "info"),
        (events.WorkerDied(**WHERE, owner="w", text="exit 1"), "error"),
        (events.BrokerFaulted(**WHERE, call="fetch", why="locked"), "warning"),
        (events.AlertThresholdReached(**WHERE, letters=100, window=3600), "error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, events.Event) else None,
)
def test_an_event_is_said_at_its_level(event: events.Event, level: str) -> None:
    stream = io.StringIO()
    set_up_logs(stream=stream, level="debug")

    EventLog()(event)

    (line,) = lines(stream)
    assert (line["level"], line["queue"], line["group"]) == (level, "orders", "shop")


def test_what_the_level_filters_out_is_not_written() -> None:
    stream = io.StringIO()
    set_up_logs(stream=stream, level="warning")

    EventLog()(events.ConsumerResumed(**WHERE))
    logging.getLogger("shop").info("hello")

    assert stream.getvalue() == ""


def test_a_users_own_line_carries_the_message_that_is_being_handled() -> None:
    stream = io.StringIO()
    delivery = Delivery(Message(id="7", queue="orders", body=b""), "shop", AT, failures=2)
    set_up_logs(stream=stream, delivery=lambda: delivery)

    logging.getLogger("shop").warning("charged %s", "a card")

    (line,) = lines(stream)
    assert (line["message"], line["queue"], line["message_id"], line["attempt"]) == (
        "charged a card",
        "orders",
        "7",
        3,
    )


def test_passwords_in_urls_are_masked_in_every_field_and_in_a_stack() -> None:
    stream = io.StringIO()
    set_up_logs(stream=stream)

    EventLog()(events.BrokerFaulted(**WHERE, call="fetch", why="no answer from redis://shop:s3cret@cache"))
    error = ConnectionError("redis://shop:s3cret@cache")
    logging.getLogger("shop").error("cannot reach %s", "redis://shop:s3cret@cache", exc_info=error)

    assert len(lines(stream)) == 2
    assert "s3cret" not in stream.getvalue()
    assert "redis://shop:***@cache" in lines(stream)[1]["exception"]


def test_a_stack_on_a_terminal_keeps_its_lines_and_shows_no_locals() -> None:
    stream = Terminal()
    set_up_logs(stream=stream, color=False)

    def fail(card: str) -> None:
        raise ConnectionError("redis://shop:s3cret@cache \x1b[2J")

    try:
        fail("4111 1111 1111 1111")
    except ConnectionError:
        logging.getLogger("shop").exception("it failed")

    shown = stream.getvalue()
    assert len(shown.splitlines()) > 4
    assert "ConnectionError: redis://shop:***@cache \\x1b[2J" in shown
    assert "\x1b" not in shown
    assert "s3cret" not in shown
    assert "card=" not in shown


def test_control_characters_cannot_reach_the_terminal() -> None:
    stream = Terminal()
    set_up_logs(stream=stream, color=False)

    EventLog()(events.BrokerFaulted(**WHERE, call="fetch", why="\x1b[2Jgone"))

    assert "\x1b" not in stream.getvalue()
    assert "\\x1b[2Jgone" in stream.getvalue()


def test_setting_up_twice_writes_each_line_once() -> None:
    first, second = io.StringIO(), io.StringIO()
    set_up_logs(stream=first)
    set_up_logs(stream=second)

    logging.getLogger("shop").warning("hello")

    assert first.getvalue() == ""
    assert len(lines(second)) == 1


def test_without_a_set_up_an_event_is_one_readable_line_of_the_standard_library(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        EventLog()(events.BrokerFaulted(**WHERE, call="fetch", why="redis://shop:s3cret@cache \x1b[2J"))
        EventLog()(events.BatchSettled(**WHERE, acked=1))

    assert caplog.messages == [
        "broker fault event_name=broker_fault queue=orders group=shop call=fetch why=redis://shop:***@cache \\x1b[2J"
    ]


def test_a_line_of_structlogs_own_loggers_goes_the_same_way() -> None:
    stream = io.StringIO()
    set_up_logs(stream=stream)

    structlog.get_logger("shop").warning("charged", place="redis://a:b@c", card="4111")

    (line,) = lines(stream)
    assert (line["message"], line["place"], line["card"]) == ("charged", "redis://a:***@c", "***")
    assert line["level"] == "warning"


def test_a_line_of_ours_carries_what_the_user_has_bound_and_the_message_in_hand() -> None:
    stream = io.StringIO()
    delivery = Delivery(Message(id="7", queue="orders", body=b""), "shop", AT, failures=2)
    set_up_logs(stream=stream, delivery=lambda: delivery)

    with structlog.contextvars.bound_contextvars(request="r1", queue="not this one"):
        EventLog()(events.ConsumerResumed(**WHERE))

    (line,) = lines(stream)
    assert (line["request"], line["queue"], line["message_id"], line["attempt"]) == ("r1", "orders", "7", 3)
    assert [*line][:3] == ["timestamp", "level", "message"]


def test_failures_that_are_told_together_are_said_one_by_one() -> None:
    stream = io.StringIO()
    set_up_logs(stream=stream)
    items = [
        Settlement(
            Delivery(Message(message_id, "orders", b""), "shop", AT),
            RetryLater(2, "later"),
            Attempt(1, AT, AT, "KeyError"),
        )
        for message_id in ("7", "8")
    ]

    EventLog()(events.BatchSettled(**WHERE, retried=2, again=items))

    assert [(line["message"], line["message_id"], line["why"], line["delay"]) for line in lines(stream)] == [
        ("will retry", "7", "later", 2.0),
        ("will retry", "8", "later", 2.0),
    ]
