"""The form *fields*: flat names and values beside the payload, which stays as it was, byte for byte."""

import json
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from redrive.core.attempt import dump_trail
from redrive.core.instant import instant_text
from redrive.core.letter import DeadLetter
from redrive.core.message import Headers
from redrive.core.wire.plain import dump
from redrive.core.wire.record import NAMES, USUAL_NAMES, Entry, Original, from_pairs, from_record, to_pairs

_NESTED = ("attempts", "context", "headers")
_BESIDE = ("headers", "key", "payload_absent")
_OURS = frozenset((*NAMES, *_BESIDE))

_SHARED: Final = (
    *("generation", "kind", "broker", "queue", "group", "handler", "app_version", "node", "pid"),
    *("reason", "error_type", "error_code", "severity", "fingerprint", "retry_count"),
)
"""What letters of one handler that failed in one way have in common. Short texts, all of them."""
_OWN: Final = tuple(name for name in NAMES if name not in _SHARED)

_names: Final = {name.encode(): name for name in (*NAMES, *_BESIDE)}
_own_names: Final = tuple(name.encode() for name in _OWN)
_shared_names: Final = tuple(name.encode() for name in _SHARED)
_always: Final = frozenset(name.encode() for name in USUAL_NAMES)
_own_values: Final = attrgetter(*_OWN)
_shared_values: Final = attrgetter(*_SHARED)
_PUBLISHED: Final = _OWN.index("dlq_published_at")

Flat = tuple[bytes, ...]
"""Names and values in turn."""


Split = tuple[list[bytes], list[bytes], Flat]
"""A letter's own names and their values, and what it shares with others."""


def split_fields(letter: DeadLetter, *, dlq_published_at: datetime | None = None) -> Split:
    """What `to_fields` has, in parts: names and values that are this letter's own, and what it shares with others.

    What is shared is remembered: letters come in heaps, and half of what they say is the same.
    """
    found = _own_values(letter)
    if dlq_published_at is not None:
        found = (*found[:_PUBLISHED], dlq_published_at, *found[_PUBLISHED + 1 :])
    names: list[bytes] = []
    values: list[bytes] = []
    failed_at = letter.failed_at
    failed = _encoded(failed_at)
    for name, value in zip(_own_names, found, strict=True):
        if value or name in _always:
            names.append(name)
            if type(value) is str:
                values.append(value.encode("utf-8", "surrogatepass"))
            else:
                values.append(failed if value is failed_at else _encoded(value))  # mostly it was published at once
    if letter.headers:
        names.append(b"headers")
        values.append(dump(to_pairs(letter.headers)))
    if letter.key is not None:
        names.append(b"key")
        values.append(letter.key)
    if letter.payload is None:
        names.append(b"payload_absent")
        values.append(b"true")
    return names, values, _shared(_shared_values(letter))


@lru_cache(maxsize=256)
def _shared(values: tuple[Any, ...]) -> Flat:
    flat: list[bytes] = []
    for name, value in zip(_shared_names, values, strict=True):
        if value or name in _always:
            flat += (name, _encoded(value))
    return tuple(flat)


def to_fields(letter: DeadLetter, *, dlq_published_at: datetime | None = None) -> Headers:
    """Everything but the payload. Texts as UTF-8, numbers in decimal, the rest as JSON; the key as it is.

    `dlq_published_at` takes the place of the letter's own: the broker's time of writing.
    """
    names, values, shared = split_fields(letter, dlq_published_at=dlq_published_at)
    said = dict(zip([*names, *shared[::2]], [*values, *shared[1::2]], strict=True))
    return tuple([(name, said[raw]) for raw, name in _names.items() if raw in said])


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
        original = tuple(pair for pair in headers if pair[0] not in _OURS)
    kept = None if "payload_absent" in raw else payload
    return from_record(record, Original(kept, raw.get("key"), original), entry=entry)


def _encoded(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, datetime):
        return instant_text(value).encode()
    if isinstance(value, int):
        return b"%d" % value
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
