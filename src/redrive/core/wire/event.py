"""A foreign form: the JSON event that wraps the message as `original_event`."""

from typing import Any

from redrive.core.context import OwnFields
from redrive.core.letter import DeadLetter
from redrive.core.wire.plain import load_object, members
from redrive.core.wire.record import Entry, Original, from_pairs, from_record

_TOLD = ("error_message", "failed_at", "retry_count", "source_topic")


def from_event(raw: bytes, *, entry: Entry) -> DeadLetter:
    """The letter in a foreign event. Raises `ValueError` for anything else.

    The payload is the exact text of `original_event`, or what it says if it is a JSON string. Some writers put the
    DLQ's own name into `source_topic`: then the queue is the entry's.
    """
    document = load_object(raw)
    if "original_event" not in document or not any(name in document for name in _TOLD):
        raise ValueError("not a dead letter: no original_event, or nothing about its failure")
    event = document["original_event"]
    inside = event if isinstance(event, dict) else {}
    record = {
        **{name: inside.get(name) for name in OwnFields._fields},
        "original_message_id": inside.get("id"),
        "stack": document.get("stack_trace"),
        "queue": _queue(document.get("source_topic"), entry),
        "error_type": document.get("error_type"),
        **{name: document[name] for name in _TOLD if name in document},
    }
    original = Original(_payload(raw.decode(), event), headers=from_pairs(document.get("headers")))
    return from_record(record, original, entry=entry)


def _queue(topic: Any, entry: Entry) -> str:
    if not isinstance(topic, str) or topic in (f"{entry.queue}.dlq", f"{entry.queue}:dlq"):
        return entry.queue
    return topic


def _payload(text: str, event: Any) -> bytes:
    if isinstance(event, str):
        return event.encode("utf-8", "surrogatepass")
    found = [member for member in members(text) if member.name == "original_event"]
    return text[found[-1].value_at : found[-1].end].encode()
