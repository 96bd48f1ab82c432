"""The form *fields*: flat names and values beside the payload, which stays as it was, byte for byte."""

import json
from datetime import datetime
from operator import attrgetter
from typing import Any

from redrive.core.attempt import dump_trail
from redrive.core.letter import DeadLetter
from redrive.core.message import Headers
from redrive.core.wire.plain import dump
from redrive.core.wire.record import NAMES, USUAL_NAMES, Entry, Original, from_pairs, from_record, to_pairs

_NESTED = ("attempts", "context", "headers")
_PUBLISHED = NAMES.index("dlq_published_at")
_ALWAYS = frozenset(USUAL_NAMES)
_OWN = frozenset((*NAMES, "headers", "key", "payload_absent"))

_values = attrgetter(*NAMES)


def to_fields(letter: DeadLetter, *, dlq_published_at: datetime | None = None) -> Headers:
    """Everything but the payload. Texts as UTF-8, numbers in decimal, the rest as JSON; the key as it is.

    `dlq_published_at` takes the place of the letter's own: the broker's time of writing.
    """
    values = list(_values(letter))
    if dlq_published_at is not None:
        values[_PUBLISHED] = dlq_published_at
    fields = [
        (name, value.encode("utf-8", "surrogatepass") if isinstance(value, str) else _encoded(value))
        for name, value in zip(NAMES, values, strict=True)
        if value or name in _ALWAYS
    ]
    if letter.headers:
        fields.append(("headers", dump(to_pairs(letter.headers))))
    if letter.key is not None:
        fields.append(("key", letter.key))
    if letter.payload is None:
        fields.append(("payload_absent", b"true"))
    return tuple(fields)


def from_fields(headers: Headers, payload: bytes | None, *, entry: Entry | None = None) -> DeadLetter:
    """The letter that `to_fields` wrote, or a foreign one with what it carries; then `entry` gives the rest.

    Of a foreign letter, the names that are not ours are taken for the message's own headers. Raises `ValueError`
    without an entry if these are not the fields of a letter.
    """
    raw = dict(reversed(headers))  # of a name that stands twice, the first counts
    record = {name: _nested(value) if name in _NESTED else _text(value) for name, value in raw.items()}
    if "letter_id" in raw:
        original = from_pairs(record.get("headers"))
    else:
        original = tuple(pair for pair in headers if pair[0] not in _OWN)
    kept = None if "payload_absent" in raw else payload
    return from_record(record, Original(kept, raw.get("key"), original), entry=entry)


def _encoded(value: Any) -> bytes:
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, datetime):
        return value.isoformat().encode()
    return dump(value) if isinstance(value, dict) else dump_trail(value)


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return value.decode("utf-8", "backslashreplace")


def _nested(value: bytes) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None
