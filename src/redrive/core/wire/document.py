"""The whole letter as one JSON document: for files, stores and interfaces."""

from typing import Any

from redrive.core.letter import DeadLetter
from redrive.core.wire.own import read_own
from redrive.core.wire.plain import dump, from_base64, load_object, to_base64
from redrive.core.wire.record import Entry, Original, complete, from_pairs, from_record, to_pairs, to_record


def to_json(letter: DeadLetter) -> bytes:
    """The letter as a JSON object. Payload and key are text, or `…_base64` where they are not UTF-8."""
    document = {**to_record(letter), **bytes_member("payload", letter.payload), **about_original(letter)}
    return dump(document)


def from_json(raw: bytes, *, entry: Entry | None = None) -> DeadLetter:
    """The letter that `to_json` wrote. Raises `ValueError` for anything else."""
    own = read_own(raw)
    if own is not None:
        return complete(own, entry=entry)
    document = load_object(raw)
    missing = [name for name in ("letter_id", "payload_sha256", "reason") if name not in document]
    if missing:
        raise ValueError(f"not a dead letter: {', '.join(missing)} is missing")
    original = read_original(document, payload=member_bytes(document, "payload"))
    return from_record(document, original, entry=entry)


def about_original(letter: DeadLetter) -> dict[str, Any]:
    """Key and headers of the message, as members of a JSON object."""
    headers = {"headers": to_pairs(letter.headers)} if letter.headers else {}
    return {**bytes_member("key", letter.key), **headers}


def read_original(document: dict[str, Any], *, payload: bytes | None) -> Original:
    """What the producer sent, from the members that `about_original` wrote. Raises `ValueError`."""
    return Original(payload, member_bytes(document, "key"), from_pairs(document.get("headers")))


def bytes_member(name: str, value: bytes | None) -> dict[str, str]:
    """Bytes as a member of a JSON object: `name` if they are UTF-8, or `name_base64`."""
    if value is None:
        return {}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": to_base64(value)}


def member_bytes(document: dict[str, Any], name: str) -> bytes | None:
    """The bytes that `bytes_member` wrote, or None. Raises `ValueError`."""
    if f"{name}_base64" in document:
        return from_base64(document[f"{name}_base64"])
    value = document.get(name)
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else None
