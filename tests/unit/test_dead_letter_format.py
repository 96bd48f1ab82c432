"""The examples in docs/dead-letter-format.md are what the code writes and reads."""

import json
import re
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from redrive.core.attempt import Attempt
from redrive.core.context import ContextRule
from redrive.core.delivery import Delivery
from redrive.core.failure import Failure
from redrive.core.letter import DeadLetter, Source, write_letter
from redrive.core.message import Headers, Message
from redrive.core.reason import Reason
from redrive.core.redrive import RedriveOutcome
from redrive.core.wire import (
    bounded,
    dump_outcome,
    load_outcome,
    read_letter,
    to_digest,
    to_embedded,
    to_fields,
    to_json,
)

PAGE = (Path(__file__).parents[2] / "docs" / "dead-letter-format.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^<!-- (\S+) -->\n+```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MESSAGE = Message(
    id="41",
    queue="orders",
    body=b'{"order": 7, "customer": {"id": "c-19", "iban": "DE02"}}',
    headers=(("content-type", b"application/json"), ("x-tenant-id", b"t-3"), ("checksum", b"\x9f\xff")),
    key=b"c-19",
)


def example() -> DeadLetter:
    trail = tuple(
        Attempt(
            number=number,
            started_at=AT + timedelta(seconds=number),
            ended_at=AT + timedelta(seconds=number, milliseconds=40),
            error_type="shop.PaymentRefused",
            error_message=f"order 7 refused: attempt {number}",
            error_code="no_funds",
            node="web-1",
        )
        for number in (1, 2)
    )
    return write_letter(
        Delivery(MESSAGE, group="shop", received_at=AT, failures=1),
        source=Source("main", "life-1", handler="shop:charge", app_version="4f2c", node="web-1", pid=811),
        failure=Failure(
            "shop.PaymentRefused", "order 7 refused: attempt 2", error_code="no_funds", frame="shop:charge"
        ),
        reason=Reason.ATTEMPTS_EXHAUSTED,
        trail=trail,
        now=AT + timedelta(seconds=2, milliseconds=40),
        context=ContextRule.of(["customer"]),
    )


EXAMPLE = example()
INVALID = replace(
    EXAMPLE,
    reason=Reason.INVALID,
    error_type="redrive.InvalidPayload",
    error_code="schema_validation_failed",
    error_message='"currency" is a required property, says #/required',
    severity="error",
    attempts=(),
    retry_count=1,
    context={**EXAMPLE.context, "validation_stage": "schema"},
)
OUTCOME = RedriveOutcome(
    letter_id=EXAMPLE.letter_id,
    generation=1,
    succeeded=True,
    reported_at=AT + timedelta(hours=1),
    queue="orders",
    group="shop",
    message_id="97",
    app_version="5a01",
    node="web-2",
)


def read(name: str, given_headers: Headers = ()) -> DeadLetter:
    return read_letter(BLOCKS[name].encode(), given_headers, queue="orders", entry_id="1-0", now=AT)


def as_lines(given_headers: Headers) -> str:
    return "".join(f"{name}: {value.decode()}\n" for name, value in given_headers)


def test_the_fields_are_as_shown() -> None:
    assert BLOCKS["fields"] == as_lines(to_fields(EXAMPLE))


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("json", to_json(EXAMPLE)),
        ("embedded", to_embedded(EXAMPLE)),
        ("base64", to_embedded(replace(EXAMPLE, payload=b"\xffnot JSON"))),
        ("digest", to_digest(INVALID)),
        ("outcome", dump_outcome(OUTCOME)),
    ],
)
def test_a_form_is_as_shown(name: str, written: bytes) -> None:
    shown = json.loads(BLOCKS[name])
    real = json.loads(written)
    if name == "base64":  # shown in part: the rest is as in the example before it
        real["dlq_metadata"] = {key: real["dlq_metadata"][key] for key in shown["dlq_metadata"]}

    assert shown == real


def test_the_examples_of_our_forms_are_read() -> None:
    embedded = read("embedded")

    assert read("json") == EXAMPLE
    assert json.loads(embedded.payload or b"") == json.loads(MESSAGE.body)
    assert replace(embedded, payload=EXAMPLE.payload, payload_sha256=EXAMPLE.payload_sha256) == EXAMPLE
    told = {**INVALID.context, "tenant_id": "t-3", "msg_id": "41"}
    assert read("digest") == replace(INVALID, payload=None, key=None, headers=(), context=told)
    assert load_outcome(BLOCKS["outcome"].encode()) == OUTCOME


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("foreign-embedded", {"error_type": "OSError", "error_message": "no disk", "task_type": "BUILD"}),
        ("foreign-event", {"error_type": "unknown", "error_message": "connection refused", "queue": "payments"}),
        ("foreign-digest", {"error_code": "SCHEMA_VALIDATION_FAILED", "tenant_id": "t-3", "payload": None}),
    ],
)
def test_the_examples_of_foreign_forms_are_read(name: str, found: dict[str, Any]) -> None:
    letter = read(name)

    assert {field: getattr(letter, field) for field in found} == found


def test_the_example_of_foreign_fields_is_read() -> None:
    lines = (line.partition(": ") for line in BLOCKS["foreign-fields"].splitlines())
    letter = read_letter(
        b"{}", tuple((name, value.encode()) for name, _, value in lines), queue="orders", entry_id="1-0", now=AT
    )

    assert (letter.original_message_id, letter.error_type, letter.retry_count) == ("1734350400000-0", "TimeoutError", 3)


def rows_of(heading: str) -> list[str]:
    section = PAGE.partition(f"# {heading}\n")[2].partition("\n#")[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def test_every_field_of_a_letter_is_in_the_table() -> None:
    assert rows_of("Fields") == [field.name for field in fields(DeadLetter)]


def test_every_reason_is_explained() -> None:
    assert rows_of("Reasons") == [*Reason]


def test_an_overflow_is_told_as_shown() -> None:
    large = replace(
        EXAMPLE, stack="s" * 9000, attempts=(*EXAMPLE.attempts, *EXAMPLE.attempts), headers=(("big", b"h" * 9000),)
    )

    assert bounded(large, limit=1500).context["overflow"].keys() == json.loads(BLOCKS["overflow"])["overflow"].keys()
