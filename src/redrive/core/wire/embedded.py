"""The form *embedded*: the message's own JSON object with one more member, `dlq_metadata`."""

from typing import Any

from redrive.core.context import OwnFields
from redrive.core.letter import DeadLetter
from redrive.core.wire.document import about_original, read_original
from redrive.core.wire.plain import as_millis, dump, from_base64, load_object, members, to_base64
from redrive.core.wire.record import Entry, from_record, to_record

_NAME = "dlq_metadata"
_DEPTH = 100


def to_embedded(letter: DeadLetter) -> bytes:
    """The payload's text with `dlq_metadata` as its last member, so that taking it out gives the payload back exactly.

    A payload that is not a JSON object in UTF-8, is nested more than 100 deep, or has a `dlq_metadata` already, goes
    into `dlq_metadata` as `payload_base64` instead.
    """
    metadata = _metadata(letter)
    if letter.payload is None:
        return dump({_NAME: {**metadata, "payload_absent": True}})
    document = _object(letter.payload)
    if document is None:
        return dump({_NAME: {**metadata, "payload_base64": to_base64(letter.payload)}})
    head, brace, tail = letter.payload.rpartition(b"}")
    comma = b"," if document else b""
    return b"".join((head, comma, dump(_NAME), b":", dump(metadata), brace, tail))


def from_embedded(raw: bytes, *, entry: Entry | None = None) -> DeadLetter:
    """The letter that `to_embedded` or somebody else wrote. Raises `ValueError` if there is no `dlq_metadata`.

    Of a foreign letter, the fields we have a name for are also looked for in the payload.
    """
    document = load_object(raw)
    metadata = document.get(_NAME)
    if not isinstance(metadata, dict):
        raise ValueError(f"not a dead letter: no {_NAME} in it")
    record = {**_aliases(metadata), **metadata}
    if "letter_id" not in metadata:
        record = {**{name: document[name] for name in OwnFields._fields if name in document}, **record}
    return from_record(record, read_original(metadata, payload=_payload(raw, metadata)), entry=entry)


def _object(payload: bytes) -> dict[str, Any] | None:
    """The payload as an object that one more member can be written into, or None."""
    try:
        document = load_object(payload)
    except ValueError:
        return None
    return None if _NAME in document or _is_deep(document) else document


def _metadata(letter: DeadLetter) -> dict[str, Any]:
    metadata = {
        "original_error": letter.error_message,
        "last_failure_timestamp": as_millis(letter.failed_at),
        **to_record(letter),
        **about_original(letter),
    }
    del metadata["error_message"]
    if letter.dlq_published_at is not None:
        metadata["dlq_published_at"] = as_millis(letter.dlq_published_at)
    return metadata


def _aliases(metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        "error_message": metadata.get("original_error"),
        "failed_at": metadata.get("last_failure_timestamp"),
    }


def _payload(raw: bytes, metadata: dict[str, Any]) -> bytes | None:
    if metadata.get("payload_absent"):
        return None
    if "payload_base64" in metadata:
        return from_base64(metadata["payload_base64"])
    return _without(raw.decode(), _NAME).encode()


def _without(text: str, name: str) -> str:
    """The text of a JSON object without the member of this name, and without the comma it brought along."""
    found = [*members(text)]
    index = max(index for index, member in enumerate(found) if member.name == name)
    start, end = found[index].name_at, found[index].end
    if index:
        start = text.rindex(",", 0, start)
    elif len(found) > 1:
        end = found[1].name_at
    return text[:start] + text[end:]


def _is_deep(value: Any) -> bool:
    """Whether it is nested so deeply that a reader, wherever it stands on its own stack, might not follow."""
    level = [value]
    for _ in range(_DEPTH):
        nested = [item for item in level if isinstance(item, dict | list)]
        level = [inner for item in nested for inner in (item.values() if isinstance(item, dict) else item)]
    return bool(level)
