"""The form *digest*: no copy of the message is kept, only its hash, what was wrong with it, and a filtered context."""

from typing import Any

from redrive.core.context import OwnFields
from redrive.core.letter import DeadLetter
from redrive.core.privacy import PrivacyFilter
from redrive.core.reason import Reason
from redrive.core.wire.plain import as_millis, dump, load_object
from redrive.core.wire.record import Entry, Original, from_record, to_record

_MOVED = ("queue", "payload_sha256", "error_code", "error_message", "severity")


def to_digest(letter: DeadLetter, *, privacy: PrivacyFilter | None = None) -> bytes:
    """The letter without payload, key and headers: they could hold what must not be kept."""
    record = {name: value for name, value in to_record(letter).items() if name not in _MOVED}
    validation = {
        "code": letter.error_code,
        "message": letter.error_message,
        "severity": letter.severity,
        "stage": letter.context.get("stage"),
    }
    digest = {
        "original_subject": letter.queue,
        "original_payload_hash": letter.payload_sha256,
        "validation_error": {name: value for name, value in validation.items() if value is not None},
        **record,
        "context": (privacy or PrivacyFilter()).mask(letter.context),
    }
    if letter.received_at is not None:
        digest["received_at"] = as_millis(letter.received_at)
    return dump(digest)


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
