"""Writing a letter."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.attempt import extend_trail
from redrive.core.context import ContextRule
from redrive.core.delivery import Delivery
from redrive.core.failure import Failure
from redrive.core.letter import DeadLetter, Source, letter_id, payload_hash, write_letter
from redrive.core.message import Headers, Message
from redrive.core.privacy import MASK
from redrive.core.reason import Reason
from tests.unit.core.letters import AT, an_attempt, headers, texts

SOURCE = Source("sqlite", "life-1", handler="shop:charge", app_version="4f2c", node="web-1", pid=7)
FAILURE = Failure("shop.Refused", "the bank said no", error_code="no_card", severity="high", frame="shop:charge")


def a_delivery(message: Message | None = None, **changes: Any) -> Delivery:
    given_message = message or Message(id="1-0", queue="orders", body=b'{"user": {"id": 7}}')
    return Delivery(given_message, group="shop", received_at=AT)._replace(**changes)


def write(delivery: Delivery, **changes: Any) -> DeadLetter:
    values: dict[str, Any] = {
        "source": SOURCE,
        "failure": FAILURE,
        "reason": Reason.REJECTED,
        "trail": (an_attempt(delivery.attempt),),
        "now": AT + timedelta(seconds=5),
    }
    return write_letter(delivery, **{**values, **changes})


def test_a_letter_says_who_gave_up_which_message_why_and_when() -> None:
    message = Message(
        id="1-0",
        queue="orders",
        body=b"\xff\x00",
        headers=(("Content-Type", b"application/json"), ("x", b"\xff")),
        key=b"k",
    )
    trail = (an_attempt(1), an_attempt(2))
    letter = write(a_delivery(message, failures=1), trail=trail, reason=Reason.ATTEMPTS_EXHAUSTED)

    assert letter == DeadLetter(
        letter_id=letter_id(broker="sqlite", incarnation="life-1", queue="orders", group="shop", origin="1-0"),
        broker="sqlite",
        queue="orders",
        group="shop",
        handler="shop:charge",
        app_version="4f2c",
        node="web-1",
        pid=7,
        original_message_id="1-0",
        key=b"k",
        payload=b"\xff\x00",
        payload_sha256=payload_hash(b"\xff\x00"),
        content_type="application/json",
        headers=message.headers,
        reason=Reason.ATTEMPTS_EXHAUSTED,
        error_type="shop.Refused",
        error_message="the bank said no",
        error_code="no_card",
        severity="high",
        fingerprint=FAILURE.fingerprint,
        attempts=trail,
        retry_count=2,
        first_failed_at=trail[0].ended_at,
        failed_at=AT + timedelta(seconds=5),
        received_at=AT,
        dlq_published_at=AT + timedelta(seconds=5),
    )


def test_a_redriven_message_keeps_its_letter_and_its_origin() -> None:
    message = Message(id="9-0", queue="orders", body=b"", origin="1-0")
    letter = write(a_delivery(message, letter_id="abc", generation=2))

    assert (letter.letter_id, letter.generation, letter.original_message_id) == ("abc", 2, "1-0")


@pytest.mark.parametrize(
    ("counted", "trail", "retry_count"),
    [
        ({}, (an_attempt(1),), 1),
        ({"failures": 3}, (an_attempt(3), an_attempt(4)), 4),
        ({"failures": 1, "crashes": 2}, (an_attempt(4),), 4),
        ({"crashes": 3}, (an_attempt(3, crash=True),), 3),
        ({}, (), 0),
        ({"generation": 1}, (an_attempt(4),), 0),
        ({"generation": 1}, (an_attempt(4), an_attempt(1, generation=1)), 1),
    ],
    ids=["first", "fourth", "with crashes", "crashed", "expired", "expired after redrive", "failed after redrive"],
)
def test_the_failed_attempts_of_this_generation_are_counted(counted: Any, trail: Any, retry_count: int) -> None:
    assert write(a_delivery(**counted), trail=trail).retry_count == retry_count


def test_a_message_that_never_ran_has_no_first_failure() -> None:
    assert write(a_delivery(), trail=()).first_failed_at is None


def test_secrets_do_not_leave_with_the_failure() -> None:
    failure = replace_text(FAILURE, "cannot reach redis://shop:hunter2@cache")
    trail = extend_trail((), an_attempt(error_message="password=hunter2"))
    letter = write(a_delivery(), failure=failure, trail=trail)

    assert letter.error_message == "cannot reach redis://shop:***@cache"
    assert letter.stack == f"token={MASK}"
    assert letter.attempts[0].error_message == f"password={MASK}"
    assert letter.fingerprint == failure.fingerprint


def replace_text(failure: Failure, text: str) -> Failure:
    return failure._replace(error_message=text, stack="token=hunter2")


def test_the_context_fills_the_letters_own_fields() -> None:
    rule = ContextRule.of(lambda _: {"user_id": 7, "task_type": "charge", "note": "x"})
    message = Message(id="1", queue="orders", body=b"", headers=(("X-Tenant-Id", b"t1"),))
    letter = write(a_delivery(message), context=rule)

    assert (letter.user_id, letter.tenant_id, letter.trace_id, letter.task_type) == ("7", "t1", None, "charge")
    assert letter.context == {"user_id": 7, "task_type": "charge", "note": "x"}


@pytest.mark.parametrize("part", ["broker", "incarnation", "queue", "group", "origin"])
def test_every_part_of_an_identity_counts(part: str) -> None:
    parts = {"broker": "b", "incarnation": "i", "queue": "q", "group": "g", "origin": "o"}

    assert letter_id(**parts) == letter_id(**parts)
    assert letter_id(**parts) != letter_id(**{**parts, part: "other"})


def test_the_parts_of_an_identity_do_not_run_into_each_other() -> None:
    assert letter_id(broker="", incarnation="", queue="a", group="\x1fb", origin="") != letter_id(
        broker="", incarnation="", queue="a\x1f", group="b", origin=""
    )


def test_an_identity_never_changes_between_versions() -> None:
    found = letter_id(broker="sqlite", incarnation="1", queue="orders", group="shop", origin="1-0")

    assert found == "f0ecbc3c06d69510e3c0a9fb0abbe897"


def test_ids_that_a_producer_chose_need_the_payload_to_tell_messages_apart() -> None:
    def of(body: bytes, *, own_ids: bool) -> str:
        delivery = a_delivery(Message(id="1", queue="orders", body=body))
        return write(delivery, source=replace(SOURCE, own_ids=own_ids)).letter_id

    assert of(b"a", own_ids=True) == of(b"b", own_ids=True)
    assert of(b"a", own_ids=False) != of(b"b", own_ids=False)
    assert of(b"a", own_ids=False) == of(b"a", own_ids=False)


@given(st.binary(), headers, texts, texts)
def test_any_message_can_be_given_up(body: bytes, given_headers: Headers, name: str, text: str) -> None:
    message = Message(id=name, queue=name, body=body, headers=given_headers)
    letter = write(a_delivery(message), failure=Failure(text, text), context=ContextRule.of(lambda _: {text: text}))

    assert (letter.payload, letter.headers) == (body, given_headers)
