"""The dead letter: a message given up, with its attempts and its reason."""

import hashlib
from dataclasses import dataclass, field, fields
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


@dataclass(frozen=True, kw_only=True)
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


def letter_of(values: dict[str, Any]) -> DeadLetter:
    """The letter with these values, one for each of its fields: at a fifth of what its constructor costs."""
    letter = object.__new__(DeadLetter)
    object.__setattr__(letter, "__dict__", values)
    return letter


def changed(letter: DeadLetter, **values: Any) -> DeadLetter:
    """The letter with these values in place of its own."""
    return letter_of({**vars(letter), **values})


_NO_CONTEXT = ContextRule()
_UNSAID = dict.fromkeys(one.name for one in fields(DeadLetter))
_FAILURES = 64  # of which is remembered what their letters have in common

_Common = tuple[dict[str, Any], str]  # values, and the place from which letters have their identity


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
    return _identity(_place(broker, incarnation, queue, group), origin, payload_sha256)


def _identity(place: str, origin: str, payload_sha256: str) -> str:
    hashed = f", {_quoted(payload_sha256)}" if payload_sha256 else ""
    return hashlib.sha256(f"[{place}, {_quoted(origin)}{hashed}]".encode()).hexdigest()[:32]


@lru_cache(maxsize=256)
def _place(*names: str) -> str:
    return ", ".join(map(_quoted, names))


class Letters:
    """Writes the dead letters of one consumer: those of messages that fail in heaps, at a third of the cost.

    What the letters of one failure have in common is put together once. The rest is set beside it.
    """

    def __init__(self, source: Source, context: ContextRule | None = None) -> None:
        self._source = source
        self._rule = context or _NO_CONTEXT
        self._common = lru_cache(maxsize=_FAILURES)(self._in_common)

    def write(self, delivery: Delivery, *, failure: Failure, reason: Reason, trail: Trail, now: datetime) -> DeadLetter:
        """The dead letter of a delivery that is given up. Never raises, whatever the message holds.

        `trail` ends with the attempt that failed now, if one was made. Payload, key and headers are the message's own,
        byte for byte; text that was made from the failure passes the privacy filter.
        """
        message, source = delivery.message, self._source
        body, headers = message.body, message.headers
        hashed = payload_hash(body)
        said = self._rule.read(message)
        common, place = self._common(message.queue, delivery.group, delivery.generation, reason, failure)
        values = common.copy()
        values["letter_id"] = delivery.letter_id or _identity(
            place, message.origin or message.id, "" if source.own_ids else hashed
        )
        values["original_message_id"] = message.origin or message.id
        values["key"] = message.key
        values["payload"] = body
        values["payload_sha256"] = hashed
        values["headers"] = headers
        values["attempts"] = _masked(trail, self._rule.privacy)
        values["retry_count"] = _failed_attempts(delivery, trail)
        values["first_failed_at"] = _first_failed_at(trail)
        values["failed_at"] = values["dlq_published_at"] = now
        values["received_at"] = delivery.received_at
        values["context"] = said
        if headers:
            values["content_type"] = _content_type(message)
        if headers or said:
            values.update(self._rule.own_fields(said, headers)._asdict())
        return letter_of(values)

    def _in_common(self, queue: str, group: str, generation: int, reason: Reason, failure: Failure) -> _Common:
        source, mask = self._source, self._rule.privacy.text
        values = {
            **_UNSAID,  # so that a copy has room for every value
            "generation": generation,
            "kind": source.kind,
            "broker": source.broker,
            "queue": queue,
            "group": group,
            "handler": source.handler,
            "app_version": source.app_version,
            "node": source.node,
            "pid": source.pid,
            "reason": reason,
            "error_type": failure.error_type,
            "error_message": mask(failure.error_message),
            "error_code": None if failure.error_code is None else mask(failure.error_code),
            "severity": failure.severity,
            "stack": None if failure.stack is None else mask(failure.stack),
            "fingerprint": failure.fingerprint,
            "content_type": "",
            "dlq_entry_id": "",
        }
        return values, _place(source.broker, source.incarnation, queue, group)


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
    """One dead letter, by `Letters.write`."""
    return Letters(source, context).write(delivery, failure=failure, reason=reason, trail=trail, now=now)


def _masked(trail: Trail, privacy: PrivacyFilter) -> Trail:
    """The trail with its texts masked. One that is still encoded was, but patterns may have been added since."""
    if isinstance(trail, EncodedTrail) and not privacy.patterns:
        return trail
    return tuple(attempt.told(privacy.text(attempt.error_message)) for attempt in trail)


def _first_failed_at(trail: Trail) -> datetime | None:
    if isinstance(trail, EncodedTrail):
        return trail.first_ended_at
    return trail[0].ended_at if trail else None


def _content_type(message: Message) -> str:
    for name, value in message.headers:
        if name.lower() == "content-type":
            return value.decode("utf-8", "backslashreplace")
    return ""


def _failed_attempts(delivery: Delivery, trail: Trail) -> int:
    """Failures and crashes of this generation, the attempt that ended now included if there was one."""
    before = delivery.failures + delivery.crashes
    last = trail.last if isinstance(trail, EncodedTrail) else trail[-1] if trail else None
    return max(before, last.number) if last and last.generation == delivery.generation else before
