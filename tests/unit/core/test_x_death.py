"""Letters of RabbitMQ's own dead-lettering, as an adapter hands them on."""

import json
from datetime import UTC, datetime

import pytest

from redrive.core.letter import DeadLetter
from redrive.core.reason import Reason
from redrive.core.wire import read_letter

AT = datetime(2026, 1, 2, tzinfo=UTC)
DIED = "2026-01-01T12:00:00+00:00"


def read(deaths: bytes) -> DeadLetter:
    headers = (("colour", b"red"), ("x-death", deaths), ("x-first-death-queue", b"orders"), ("x-delivery-count", b"3"))
    return read_letter(b"\xff", headers, queue="dead", entry_id="1", now=AT, broker="rabbitmq")


def test_a_letter_says_where_the_message_died_why_and_when_and_its_own_headers_are_its_own() -> None:
    letter = read(json.dumps([{"queue": "orders", "reason": "rejected", "time": DIED, "count": 2}]).encode())

    assert (letter.queue, letter.reason, letter.error_type) == ("orders", Reason.REJECTED, "x-death.rejected")
    assert (letter.failed_at, letter.retry_count) == (datetime(2026, 1, 1, 12, tzinfo=UTC), 2)
    assert (letter.payload, letter.headers, letter.group) == (b"\xff", (("colour", b"red"),), "")


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("expired", Reason.EXPIRED),
        ("delivery_limit", Reason.ATTEMPTS_EXHAUSTED),
        ("maxlen", Reason.UNKNOWN),
        ("something new", Reason.UNKNOWN),
    ],
)
def test_what_the_server_calls_a_reason_is_one_of_ours(why: str, reason: Reason) -> None:
    assert read(json.dumps([{"queue": "orders", "reason": why}]).encode()).reason is reason


@pytest.mark.parametrize("deaths", [b"", b"\xff", b"{}", b"[]", b"[1]", b'[{"count":"x"}]', b"[" * 100_000])
def test_what_cannot_be_read_is_a_letter_all_the_same(deaths: bytes) -> None:
    letter = read(deaths)

    assert (letter.payload, letter.error_type, letter.queue, letter.failed_at) == (b"\xff", "x-death", "dead", AT)
