"""The dead letter: a message given up, with its attempts and its reason."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any

from redrive.core.attempt import EncodedTrail, Trail
from redrive.core.context import ContextRule
from redrive.core.delivery import Delivery
from redrive.core.failure import Failure
from redrive.core.message import Headers, Message
from redrive.core.privacy import PrivacyFilter
from redrive.core.reason import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """One model for every broker and for the gateway. `payload` is None only in digest mode.

    `dlq_entry_id` is the id that the letter's entry had in its DLQ, known from when it is collected.
    """

    letter_id: str
    generation: int = 0
    kind: str = "message"
    broker: str = ""
    queue: str
    group: str = ""
    handler: str = ""
    app_version: str = ""
    node: str = ""
    pid: int = 0
    original_message_id: str = ""
    key: bytes | None = None
    payload: bytes | None
    payload_sha256: str
    content_type: str = ""
    headers: Headers = ()
    reason: Reason
    error_type: str = "unknown"
    error_message: str = ""
    error_code: str | None = None
    severity: str | None = None
    stack: str | None = None
    fingerprint: str = ""
    attempts: Trail = ()
    retry_count: int = 0
    first_failed_at: datetime | None = None
    failed_at: datetime
    received_at: datetime | None = None
    dlq_published_at: datetime | None = None
    collected_at: datetime | None = None
    user_id: str | None = None
    tenant_id: str | None = None
    trace_id: str | None = None
    task_type: str | None = None
    context: dict[str, Any] = field(default_factory=dict)
    dlq_entry_id: str = ""


_NO_CONTEXT = ContextRule()


@dataclass(frozen=True, slots=True)
class Source:
    """Where a letter comes from: the same for every letter of one consumer in one process.

    `incarnation` names this life of the queue. With `own_ids` the broker itself gave the message its id; without,
    a producer chose it, and the payload's hash joins the letter's identity. `kind` says what the letters are of.
    """

    broker: str
    incarnation: str
    handler: str = ""
    app_version: str = ""
    node: str = ""
    pid: int = 0
    own_ids: bool = True
    kind: str = "message"


def payload_hash(payload: bytes) -> str:
    """The SHA-256 of a payload, in hexadecimal."""
    return hashlib.sha256(payload).hexdigest()


def letter_id(*, broker: str, incarnation: str, queue: str, group: str, origin: str, payload_sha256: str = "") -> str:
    """The identity of a letter: derived once from where its message was first enqueued, then carried.

    `payload_sha256` is given only where a producer chose the origin, and may have chosen it twice.
    """
    hashed = f", {_quoted(payload_sha256)}" if payload_sha256 else ""
    text = f"[{_place(broker, incarnation, queue, group)}, {_quoted(origin)}{hashed}]"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@lru_cache(maxsize=256)
def _place(*names: str) -> str:
    return ", ".join(map(_quoted, names))


def write_letter(
    delivery: Delivery,
    *,
    source: Source,
    failure: Failure,
    reason: Reason,
    trail: Trail,
    now: datetime,
    context: ContextRule | None = None,
) -> DeadLetter:
    """The dead letter of a delivery that is given up. Pure, and never raises, whatever the message holds.

    `trail` ends with the attempt that failed now, if one was made. Payload, key and headers are the message's own,
    byte for byte; text that was made from the failure passes the privacy filter.
    """
    rule = context or _NO_CONTEXT
    message = delivery.message
    hashed = payload_hash(message.body)
    said = rule.read(message)
    own = rule.own_fields(said, message.headers)
    return DeadLetter(
        letter_id=delivery.letter_id or _derived_id(delivery, source, hashed),
        generation=delivery.generation,
        kind=source.kind,
        broker=source.broker,
        queue=message.queue,
        group=delivery.group,
        handler=source.handler,
        app_version=source.app_version,
        node=source.node,
        pid=source.pid,
        original_message_id=message.origin_id,
        key=message.key,
        payload=message.body,
        payload_sha256=hashed,
        content_type=_content_type(message) if message.headers else "",
        headers=message.headers,
        reason=reason,
        error_type=failure.error_type,
        error_message=rule.privacy.text(failure.error_message),
        error_code=None if failure.error_code is None else rule.privacy.text(failure.error_code),
        severity=failure.severity,
        stack=None if failure.stack is None else rule.privacy.text(failure.stack),
        fingerprint=failure.fingerprint,
        attempts=_masked(trail, rule.privacy),
        retry_count=_failed_attempts(delivery, trail),
        first_failed_at=_first_failed_at(trail),
        failed_at=now,
        received_at=delivery.received_at,
        dlq_published_at=now,
        user_id=own.user_id,
        tenant_id=own.tenant_id,
        trace_id=own.trace_id,
        task_type=own.task_type,
        context=said,
    )


def _masked(trail: Trail, privacy: PrivacyFilter) -> Trail:
    """The trail with its texts masked. One that is still encoded was, but patterns may have been added since."""
    if isinstance(trail, EncodedTrail) and not privacy.patterns:
        return trail
    return tuple(attempt.told(privacy.text(attempt.error_message)) for attempt in trail)


def _first_failed_at(trail: Trail) -> datetime | None:
    if isinstance(trail, EncodedTrail):
        return trail.first_ended_at
    return trail[0].ended_at if trail else None


def _derived_id(delivery: Delivery, source: Source, hashed: str) -> str:
    return letter_id(
        broker=source.broker,
        incarnation=source.incarnation,
        queue=delivery.message.queue,
        group=delivery.group,
        origin=delivery.message.origin_id,
        payload_sha256="" if source.own_ids else hashed,
    )


def _content_type(message: Message) -> str:
    for name, value in message.headers:
        if name.lower() == "content-type":
            return value.decode("utf-8", "backslashreplace")
    return ""


def _failed_attempts(delivery: Delivery, trail: Trail) -> int:
    """Failures and crashes of this generation, the attempt that ended now included if there was one."""
    before = delivery.failures + delivery.crashes
    last = trail[-1] if trail else None
    return max(before, last.number) if last and last.generation == delivery.generation else before
