"""The form *digest*: no copy of the message is kept, only its hash, what was wrong with it, and a filtered context."""

from typing import Any

from redrive.core.context import OwnFields
from redrive.core.letter import DeadLetter
from redrive.core.privacy import PrivacyFilter
from redrive.core.reason import Reason
from redrive.core.wire.plain import as_millis, dump, load_object
from redrive.core.wire.record import Entry, Original, from_record, to_record

_MOVED = ("queue", "payload_sha256", "error_code", "error_message", "severity", "node")


def to_digest(letter: DeadLetter, *, privacy: PrivacyFilter | None = None) -> bytes:
    """The letter without payload, key and headers: they could hold what must not be kept."""
    record = {name: value for name, value in to_record(letter).items() if name not in _MOVED}
    error = {"code": letter.error_code, "message": letter.error_message, "severity": letter.severity}
    told = {name: getattr(letter, name) for name in OwnFields._fields}
    context = {**_said(told), "msg_id": letter.original_message_id, **letter.context}
    digest = {
        "original_subject": letter.queue,
        "original_payload_hash": letter.payload_sha256,
        "validation_error": _said(error),
        "context": (privacy or PrivacyFilter()).mask(context),
        "received_at": None if letter.received_at is None else as_millis(letter.received_at),
        "router_node_id": letter.node,
        **{name: value for name, value in record.items() if name not in ("context", "received_at")},
    }
    return dump(_said(digest))


def _said(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def entry_body(letter: DeadLetter) -> bytes:
    """The body of a letter's entry in a DLQ: the payload as it is, or the digest where none is kept.

    A letter that never had a payload has no body either.
    """
    if letter.payload is not None:
        return letter.payload
    return to_digest(letter) if letter.payload_sha256 else b""


def from_digest(raw: bytes, *, entry: Entry | None = None) -> DeadLetter:
    """The letter that `to_digest` or somebody else wrote. Raises `ValueError` for anything else."""
    document = load_object(raw)
    problem = document.get("validation_error")
    if not isinstance(problem, dict) or "original_payload_hash" not in document:
        raise ValueError("not a dead letter: no validation_error or no original_payload_hash in it")
    record = {
        "reason": Reason.INVALID,
        **_from_context(document.get("context")),
        **document,
        "queue": document.get("original_subject"),
        "payload_sha256": document["original_payload_hash"],
        "error_code": problem.get("code"),
        "error_message": problem.get("message"),
        "severity": problem.get("severity"),
    }
    record.setdefault("node", document.get("router_node_id"))
    return from_record(record, Original(payload=None), entry=entry)


def _from_context(context: Any) -> dict[str, Any]:
    if not isinstance(context, dict):
        return {}
    found = {name: context.get(name) for name in OwnFields._fields}
    return {**found, "original_message_id": context.get("msg_id")}
