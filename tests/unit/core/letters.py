"""Letters for tests: one that says everything, and strategies for any."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from redrive.core.attempt import Attempt
from redrive.core.letter import DeadLetter, payload_hash
from redrive.core.reason import Reason

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def a_letter(payload: bytes | None = b'{"order": 1}', **changes: Any) -> DeadLetter:
    values: dict[str, Any] = {
        "letter_id": "5f2b8c0d9e1a4736b8c0d9e1a4736f2b",
        "queue": "orders",
        "group": "shop",
        "payload": payload,
        "payload_sha256": payload_hash(payload or b""),
        "reason": Reason.REJECTED,
        "error_type": "ValueError",
        "fingerprint": "0123456789abcdef",
        "failed_at": AT,
    }
    return DeadLetter(**{**values, **changes})


def an_attempt(number: int = 1, **changes: Any) -> Attempt:
    values: dict[str, Any] = {
        "number": number,
        "started_at": AT,
        "ended_at": AT + timedelta(seconds=1),
        "error_type": "ValueError",
    }
    return Attempt(**{**values, **changes})


# Text of every kind: NUL, lone surrogates and unassigned characters too.
texts = st.text(st.characters(exclude_categories=[]), max_size=8)
some_text = texts.filter(bool)
words = st.none() | some_text
instants = st.datetimes(
    min_value=datetime(1971, 1, 1),  # noqa: DTZ001 - the zone comes from the next line
    max_value=datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
whole_millis = instants.map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000))
counts = st.integers(0, 2**31 - 1)
header_names = st.binary(max_size=12).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
headers = st.lists(st.tuples(header_names, st.binary(max_size=40)), max_size=5).map(tuple)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
contexts = st.dictionaries(texts, json_values, max_size=4)
attempts = st.builds(
    Attempt,
    number=counts,
    started_at=instants,
    ended_at=instants,
    error_type=texts,
    error_message=texts,
    error_code=st.none() | texts,
    crash=st.booleans(),
    node=texts,
    generation=counts,
)


@st.composite
def any_letter(draw: st.DrawFn, *, payloads: st.SearchStrategy[bytes | None] = st.binary()) -> DeadLetter:  # noqa: B008
    payload = draw(payloads)
    values: dict[str, Any] = {
        **{name: draw(texts) for name in ("broker", "group", "handler", "app_version", "node", "content_type")},
        **{name: draw(texts) for name in ("original_message_id", "error_message", "fingerprint", "dlq_entry_id")},
        **{name: draw(some_text) for name in ("letter_id", "kind", "queue", "error_type")},
        **{name: draw(words) for name in ("error_code", "severity", "stack")},
        **{name: draw(words) for name in ("user_id", "tenant_id", "trace_id", "task_type")},
        **{name: draw(counts) for name in ("generation", "pid", "retry_count")},
        **{name: draw(st.none() | instants) for name in ("first_failed_at", "collected_at")},
        **{name: draw(st.none() | whole_millis) for name in ("received_at", "dlq_published_at")},
    }
    return DeadLetter(
        **values,
        payload=payload,
        payload_sha256=draw(some_text) if payload is None else payload_hash(payload),
        key=draw(st.none() | st.binary(max_size=20)),
        headers=draw(headers),
        reason=draw(st.sampled_from(Reason)),
        attempts=draw(st.lists(attempts, max_size=3).map(tuple)),
        failed_at=draw(instants),
        context=draw(contexts),
    )
