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


def split_fields(letter: DeadLetter, *, dlq_published_at: datetime | None = None) -> tuple[list[bytes], Flat]:
    """What `to_fields` has, names and values in turn: what is this letter's own, and what it shares with others.

    What is shared is remembered: letters come in heaps, and half of what they say is the same.
    """
    own: list[bytes] = []
    values = _own_values(letter)
    if dlq_published_at is not None:
        values = (*values[:_PUBLISHED], dlq_published_at, *values[_PUBLISHED + 1 :])
    for name, value in zip(_own_names, values, strict=True):
        if value or name in _always:
            own += (name, _encoded(value))
    if letter.headers:
        own += (b"headers", dump(to_pairs(letter.headers)))
    if letter.key is not None:
        own += (b"key", letter.key)
    if letter.payload is None:
        own += (b"payload_absent", b"true")
    return own, _shared(_shared_values(letter))


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
    own, shared = split_fields(letter, dlq_published_at=dlq_published_at)
    flat = [*own, *shared]
    said = dict(zip(flat[::2], flat[1::2], strict=True))
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
