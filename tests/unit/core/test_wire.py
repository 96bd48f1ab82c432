"""Every form: what is written is read back, and what others wrote is read as well as can be."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redrive.core.letter import DeadLetter, payload_hash
from redrive.core.message import Headers
from redrive.core.privacy import PrivacyFilter
from redrive.core.reason import Reason
from redrive.core.redrive import RedriveOutcome
from redrive.core.wire import (
    Entry,
    bounded,
    dump_outcome,
    from_digest,
    from_embedded,
    from_event,
    from_fields,
    from_json,
    load_outcome,
    read_letter,
    to_digest,
    to_embedded,
    to_fields,
    to_json,
)
from redrive.core.wire.overflow import fields_size
from tests.unit.core.letters import (
    AT,
    a_letter,
    an_attempt,
    any_letter,
    counts,
    headers,
    instants,
    json_values,
    some_text,
    texts,
)

HARD_PAYLOADS = [b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf{}", b"{}", b"{ }", b'{"a":1 }\n', b"null", b"[1]", b'"x"']
json_objects = st.dictionaries(texts, json_values, max_size=4)
json_payloads = st.builds(
    lambda value, indent: json.dumps(value, indent=indent).encode(), json_objects, st.none() | st.integers(0, 3)
)


def read(body: bytes, given_headers: Headers = ()) -> DeadLetter:
    return read_letter(body, given_headers, queue="orders", entry_id="7-0", now=AT, broker="main")


@given(any_letter(payloads=st.none() | st.binary()))
def test_a_letter_in_fields_comes_back_as_it_was(letter: DeadLetter) -> None:
    fields = to_fields(letter)

    assert from_fields(fields, letter.payload or b"") == letter
    assert read(letter.payload or b"", fields) == letter


@given(any_letter(), instants)
def test_the_broker_says_when_a_letter_was_published(letter: DeadLetter, at: datetime) -> None:
    assert to_fields(letter, dlq_published_at=at) == to_fields(replace(letter, dlq_published_at=at))


@given(any_letter(payloads=st.none() | st.binary()))
def test_a_letter_as_a_json_document_comes_back_as_it_was(letter: DeadLetter) -> None:
    assert from_json(to_json(letter)) == letter


@given(any_letter(payloads=st.none() | st.binary() | json_payloads))
def test_an_embedded_letter_comes_back_as_it_was(letter: DeadLetter) -> None:
    assert from_embedded(to_embedded(letter)) == letter


@given(any_letter())
def test_a_digest_keeps_everything_but_the_message(letter: DeadLetter) -> None:
    kept = replace(letter, payload=None, key=None, headers=(), context=PrivacyFilter().mask(letter.context))
    found = from_digest(to_digest(letter))

    assert replace(found, context=kept.context) == kept
    assert {**found.context, **kept.context} == found.context


@pytest.mark.parametrize("payload", HARD_PAYLOADS)
@pytest.mark.parametrize("form", ["fields", "json", "embedded"])
def test_bytes_come_back_as_bytes_through_the_reader(form: str, payload: bytes) -> None:
    letter = a_letter(payload, headers=(("\udcff", b"\xff\x00"), ("twice", b"1"), ("twice", b"")), key=b"\xfe")
    found = {
        "fields": lambda: read(payload, to_fields(letter)),
        "json": lambda: read(to_json(letter)),
        "embedded": lambda: read(to_embedded(letter)),
    }[form]()

    assert found == letter


@given(st.binary(), headers)
@example(b'{"dlq_metadata": {"payload_base64": "?"}}', ())
@example(b'{"dlq_metadata": ' + b"[" * 100_000, ())
@example(b'{"letter_id": "x", "payload_sha256": 1, "reason": ' + b"9" * 5000 + b"}", ())
@example(b"", (("letter_id", b"\xff"), ("attempts", b"[" * 100_000), ("context", b"9" * 5000)))
@example(b"", (("error_type", b"x"), ("failed_at", b"9" * 400), ("retry_count", b"9" * 5000)))
def test_reading_never_raises(body: bytes, given_headers: Headers) -> None:
    assert isinstance(read(body, given_headers), DeadLetter)


@given(json_objects, st.sampled_from(["dlq_metadata", "validation_error", "original_event", "letter_id"]), json_values)
def test_reading_never_raises_for_json_that_looks_like_a_letter(
    document: dict[str, object], name: str, value: object
) -> None:
    body = json.dumps({**document, name: value, "failed_at": value, "original_payload_hash": value}).encode()

    assert isinstance(read(body), DeadLetter)


def test_the_fields_are_flat_and_readable() -> None:
    letter = a_letter(
        error_message="kein Lager für 3 Stück",
        retry_count=4,
        headers=(("trace", b"abc"), ("raw", b"\xff")),
        key=b"k1",
        user_id="u1",
    )

    assert dict(to_fields(letter)) == {
        "letter_id": b"5f2b8c0d9e1a4736b8c0d9e1a4736f2b",
        "kind": b"message",
        "queue": b"orders",
        "group": b"shop",
        "original_message_id": b"",
        "payload_sha256": letter.payload_sha256.encode(),
        "error_type": b"ValueError",
        "error_message": "kein Lager für 3 Stück".encode(),
        "fingerprint": b"0123456789abcdef",
        "user_id": b"u1",
        "retry_count": b"4",
        "failed_at": b"2026-03-01T12:00:00+00:00",
        "reason": b"rejected",
        "headers": b'[["trace","abc"],["raw",{"base64":"/w=="}]]',
        "key": b"k1",
    }


def test_fields_without_an_identity_are_no_letter_of_ours() -> None:
    with pytest.raises(ValueError, match="not a dead letter"):
        from_fields((("error_type", b"ValueError"),), b"")


def test_foreign_fields_are_completed_by_the_entry() -> None:
    given_headers = (
        ("original_message_id", b"1-0"),
        ("error_type", b""),
        ("error_message", b"boom"),
        ("retry_count", b"many"),
        ("user_id", b""),
        ("x-request", b"\xff"),
    )
    letter = read(b"payload", given_headers)

    assert letter.payload == b"payload"
    assert letter.headers == (("x-request", b"\xff"),)
    assert (letter.queue, letter.broker, letter.failed_at) == ("orders", "main", AT)
    assert (letter.error_type, letter.error_message, letter.retry_count) == ("unknown", "boom", 0)
    assert (letter.user_id, letter.reason, letter.group) == (None, Reason.UNKNOWN, "")
    assert letter.original_message_id == "1-0"
    assert len(letter.fingerprint) == 16


def test_a_foreign_letter_read_twice_is_one_letter_and_two_entries_are_two() -> None:
    def of(entry_id: str, broker: str = "main") -> str:
        return read_letter(b"x", (), queue="orders", entry_id=entry_id, now=AT, broker=broker).letter_id

    assert of("1-0") == of("1-0")
    assert len({of("1-0"), of("2-0"), of("1-0", broker="other")}) == 3


def test_what_is_no_known_form_is_a_letter_of_unknown_reason() -> None:
    letter = read(b'{"order": 1}', (("trace", b"1"),))

    assert (letter.payload, letter.headers) == (b'{"order": 1}', (("trace", b"1"),))
    assert (letter.reason, letter.error_type) == (Reason.UNKNOWN, "unknown")


def test_an_embedded_payload_keeps_its_text_to_the_last_space() -> None:
    payload = b' { "n" : 1.0e2 , "n":1 , "\\u0061" : [ ] } \n'
    embedded = to_embedded(a_letter(payload))

    assert embedded.startswith(b' { "n" : 1.0e2 , "n":1 , "\\u0061" : [ ] ,"dlq_metadata":{')
    assert from_embedded(embedded).payload == payload


@pytest.mark.parametrize(
    "payload",
    [b"\xff", b"text", b"[1]", b'{"dlq_metadata": 1}', b'{"a":' * 101 + b"1" + b"}" * 101, b"[" * 100_000],
    ids=["bytes", "text", "list", "has one", "deep", "bomb"],
)
def test_what_cannot_be_embedded_travels_as_base64(payload: bytes) -> None:
    embedded = to_embedded(a_letter(payload))

    assert [*json.loads(embedded)] == ["dlq_metadata"]
    assert from_embedded(embedded).payload == payload


def test_embedded_metadata_has_the_names_and_types_that_others_read() -> None:
    at = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
    metadata = json.loads(to_embedded(a_letter(error_message="boom", failed_at=at, dlq_published_at=at)))[
        "dlq_metadata"
    ]

    assert metadata["original_error"] == "boom"
    assert metadata["retry_count"] == 0
    assert metadata["last_failure_timestamp"] == metadata["dlq_published_at"] == 1772366400123
    assert from_embedded(to_embedded(a_letter(failed_at=at))).failed_at == at


TICKET = b'"ticket_id": "t1", "task_type": "BUILD"'
METADATA = (
    b'"dlq_metadata": {"original_error": "no disk", "error_type": "OSError", "retry_count": 3, '
    b'"last_failure_timestamp": 1772366400000, "dlq_published_at": 1772366401000}'
)


@pytest.mark.parametrize("members", [(TICKET, METADATA), (METADATA, TICKET)], ids=["last", "first"])
def test_a_foreign_embedded_letter_is_read(members: tuple[bytes, bytes]) -> None:
    letter = read(b"{" + b", ".join(members) + b"}", (("trace", b"1"),))

    assert letter.payload == b'{"ticket_id": "t1", "task_type": "BUILD"}'
    assert letter.headers == (("trace", b"1"),)
    assert (letter.error_type, letter.error_message, letter.retry_count) == ("OSError", "no disk", 3)
    assert letter.failed_at == AT
    assert letter.dlq_published_at == AT + timedelta(seconds=1)
    assert letter.task_type == "BUILD"


def test_a_payload_edited_in_an_embedded_letter_has_its_own_hash() -> None:
    edited = to_embedded(a_letter(b'{"n":1}')).replace(b'"n":1', b'"n":2')
    letter = from_embedded(edited)

    assert letter.payload == b'{"n":2}'
    assert letter.payload_sha256 == payload_hash(b'{"n":2}')


def test_a_digest_holds_no_copy_of_the_message() -> None:
    letter = a_letter(
        b'{"card": "4111"}',
        headers=(("authorization", b"Bearer abc123"),),
        key=b"ann@example.org",
        reason=Reason.INVALID,
        error_code="missing_field",
        error_message="tenant_id is missing",
        severity="error",
        context={"validation_stage": "validate", "run_id": "r1", "password": "hunter2"},
        node="router@node1",
    )
    digest = to_digest(letter)
    document = json.loads(digest)

    assert not any(secret in digest for secret in (b"4111", b"abc123", b"ann@", b"hunter2"))
    assert document["original_payload_hash"] == letter.payload_sha256
    assert document["validation_error"] == {
        "code": "missing_field",
        "message": "tenant_id is missing",
        "severity": "error",
    }
    assert document["context"] == {
        "msg_id": letter.original_message_id,
        "run_id": "r1",
        "validation_stage": "validate",
        "password": "***",
    }
    assert document["router_node_id"] == "router@node1"


def test_a_foreign_digest_is_read() -> None:
    body = json.dumps(
        {
            "original_subject": "router.v1.decide",
            "original_payload_hash": "ab" * 32,
            "validation_error": {"code": "SCHEMA", "message": "missing tenant_id", "severity": "error"},
            "context": {"tenant_id": "t1", "trace_id": "tr1", "msg_id": "m1", "validation_stage": "schema"},
            "received_at": 1772366400123,
            "router_node_id": "router@node1",
        }
    ).encode()
    letter = read(body)

    assert (letter.payload, letter.payload_sha256) == (None, "ab" * 32)
    assert (letter.queue, letter.node, letter.original_message_id) == ("router.v1.decide", "router@node1", "m1")
    assert (letter.error_code, letter.error_message, letter.severity) == ("SCHEMA", "missing tenant_id", "error")
    assert (letter.reason, letter.tenant_id, letter.trace_id) == (Reason.INVALID, "t1", "tr1")
    assert letter.received_at == AT + timedelta(milliseconds=123)


def an_event(**changes: object) -> bytes:
    document = {
        "original_event": {"id": "e1", "user_id": 7},
        "error_message": "boom",
        "retry_count": 4,
        "failed_at": "2026-03-01T12:00:00.123456789Z",
        "source_topic": "payments",
        "stack_trace": "goroutine 1",
        "headers": {"trace": "1"},
    }
    return json.dumps({**document, **changes}).encode()


def test_a_foreign_event_is_read() -> None:
    letter = read(an_event())

    assert letter.payload == b'{"id": "e1", "user_id": 7}'
    assert (letter.queue, letter.original_message_id, letter.user_id) == ("payments", "e1", "7")
    assert (letter.error_type, letter.error_message, letter.retry_count) == ("unknown", "boom", 4)
    assert letter.failed_at == AT + timedelta(microseconds=123456)
    assert (letter.stack, letter.headers) == ("goroutine 1", (("trace", b"1"),))
    assert letter.reason is Reason.UNKNOWN


@given(st.binary(max_size=20).map(lambda raw: raw.decode("latin-1")) | json_values)
def test_the_event_inside_keeps_its_exact_text(event: object) -> None:
    letter = from_event(an_event(original_event=event), entry=Entry("orders", "1", AT))
    expected = event.encode("utf-8", "surrogatepass") if isinstance(event, str) else json.dumps(event).encode()

    assert letter.payload == expected


@pytest.mark.parametrize("topic", ["orders.dlq", "orders:dlq", None])
def test_an_event_that_names_the_dlq_as_its_source_belongs_to_the_queue(topic: str | None) -> None:
    assert read(an_event(source_topic=topic)).queue == "orders"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-01T12:00:00Z", AT),
        ("2026-03-01T13:00:00+01:00", AT),
        ("2026-03-01T12:00:00", AT),
        (1772366400, AT),
        (1772366400000, AT),
        ("1772366400000", AT),
        (1772366400000000, AT),
        ("yesterday", None),
        (True, None),
        (-1e30, None),
        ([], None),
    ],
)
def test_the_time_of_failure_is_read_in_many_spellings(value: object, expected: datetime | None) -> None:
    now = AT + timedelta(days=1)
    letter = from_event(an_event(failed_at=value), entry=Entry("orders", "1", now))

    assert letter.failed_at == (expected or now)


@pytest.mark.parametrize("read_form", [from_json, from_embedded, from_digest])
@pytest.mark.parametrize("raw", [b"", b"\xff", b"[]", b"{}", b'{"letter_id": "x"}', b"[" * 100_000])
def test_what_is_not_of_a_form_is_a_value_error(read_form: Callable[[bytes], DeadLetter], raw: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_form(raw)


@given(
    st.builds(
        RedriveOutcome,
        letter_id=some_text,
        generation=counts,
        succeeded=st.booleans(),
        reported_at=instants,
        queue=texts,
        group=texts,
        message_id=texts,
        attempts=counts,
        app_version=texts,
        node=texts,
    )
)
def test_an_outcome_comes_back_as_it_was(outcome: RedriveOutcome) -> None:
    assert load_outcome(dump_outcome(outcome)) == outcome


@pytest.mark.parametrize("raw", [b"", b"null", b"{}", b'{"letter_id": "x", "succeeded": 1, "reported_at": "now"}'])
def test_an_unreadable_outcome_is_a_value_error(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        load_outcome(raw)


LARGE = a_letter(
    stack="s" * 5000,
    error_message="m" * 5000,
    attempts=tuple(an_attempt(n, error_message="a" * 500) for n in range(1, 6)),
    context={"note": "c" * 3000},
    headers=(("big", b"h" * 4000),),
)


def test_a_letter_that_fits_is_left_alone() -> None:
    assert bounded(LARGE, limit=fields_size(LARGE)) is LARGE


def test_the_least_needed_is_left_out_first() -> None:
    order = {}
    for limit in range(fields_size(LARGE), 500, -50):
        left_out = bounded(LARGE, limit=limit).context.get("overflow", {})
        order.update(dict.fromkeys(left_out))

    assert [*order] == ["stack", "attempts", "error_message", "context", "headers_sha256"]


@pytest.mark.parametrize("limit", [15_000, 12_000, 8_000, 5_000, 1_500])
def test_a_bounded_letter_fits_says_what_is_missing_and_keeps_its_payload(limit: int) -> None:
    smaller = bounded(LARGE, limit=limit)

    assert fields_size(smaller) <= limit
    assert smaller.context["overflow"]
    assert (smaller.letter_id, smaller.payload, smaller.error_type) == (LARGE.letter_id, LARGE.payload, "ValueError")
    assert bounded(smaller, limit=limit) == smaller


@given(any_letter(), st.integers(0, 2000))
def test_bounding_never_makes_a_letter_larger_than_its_note(letter: DeadLetter, limit: int) -> None:
    smaller = bounded(letter, limit=limit)

    assert from_fields(to_fields(smaller), smaller.payload) == smaller
    assert fields_size(smaller) <= max(limit, fields_size(letter) + 300)


def test_headers_that_do_not_fit_leave_their_hash() -> None:
    smaller = bounded(LARGE, limit=1_500)

    assert smaller.headers == ()
    assert len(smaller.context["overflow"]["headers_sha256"]) == 64
