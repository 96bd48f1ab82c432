"""The form *fields*: flat names and values beside the payload, which stays as it was, byte for byte."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from operator import itemgetter
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
_OWN: Final = (
    *("letter_id", "original_message_id", "payload_sha256", "error_message", "attempts"),
    *("failed_at", "first_failed_at", "received_at", "dlq_published_at"),
)
"""What every letter of a worker's own has."""
_SELDOM: Final = tuple(name for name in NAMES if name not in (*_SHARED, *_OWN))
"""What few letters have."""

_names: Final = {name.encode(): name for name in (*NAMES, *_BESIDE)}
_own_names: Final = tuple(name.encode() for name in _OWN)
_seldom_names: Final = tuple(name.encode() for name in _SELDOM)
_shared_names: Final = tuple(name.encode() for name in _SHARED)
_always: Final = frozenset(name.encode() for name in USUAL_NAMES)
_own: Final = itemgetter(*_OWN)
_seldom_values: Final = itemgetter(*_SELDOM)
_shared_values: Final = itemgetter(*_SHARED)

Flat = tuple[bytes, ...]
"""Names and values in turn."""


Split = tuple[Sequence[bytes], Sequence[bytes], Flat]
"""A letter's own names and their values, and what it shares with others."""


def split_fields(letter: DeadLetter, *, dlq_published_at: datetime | None = None) -> Split:
    """What `to_fields` has, in parts: names and values that are this letter's own, and what it shares with others.

    What is shared is remembered: letters come in heaps, and half of what they say is the same.
    """
    said = vars(letter)  # where most is read at once, at half the cost
    letter_id, message_id, sha256, error, attempts, failed_at, first_failed_at, received_at, published_at = _own(said)
    published_at = dlq_published_at or published_at
    failed = instant_text(failed_at).encode()
    names: Sequence[bytes] = _own_names
    values = [
        letter_id.encode("utf-8", "surrogatepass"),
        message_id.encode("utf-8", "surrogatepass"),
        sha256.encode("utf-8", "surrogatepass"),
        error.encode("utf-8", "surrogatepass"),
        dump_trail(attempts) if attempts else b"",
        failed,
        instant_text(first_failed_at).encode() if first_failed_at else b"",
        _together(received_at) if received_at else b"",
        failed if published_at is failed_at else instant_text(published_at).encode() if published_at else b"",
    ]
    if not all(values):
        told = [(name, value) for name, value in zip(names, values, strict=True) if value or name in _always]
        names, values = [name for name, _ in told], [value for _, value in told]
    seldom = _seldom_values(said)
    if any(seldom) or letter.headers or letter.key is not None or letter.payload is None:
        more = _seldom(letter, seldom)
        names, values = [*names, *more], [*values, *more.values()]
    return names, values, _shared(_shared_values(said))


def _seldom(letter: DeadLetter, values: tuple[Any, ...]) -> dict[bytes, bytes]:
    said = {name: _encoded(value) for name, value in zip(_seldom_names, values, strict=True) if value}
    if letter.headers:
        said[b"headers"] = dump(to_pairs(letter.headers))
    if letter.key is not None:
        said[b"key"] = letter.key
    if letter.payload is None:
        said[b"payload_absent"] = b"true"
    return said


@lru_cache(maxsize=256)
def _shared(values: tuple[Any, ...]) -> Flat:
    flat: list[bytes] = []
    for name, value in zip(_shared_names, values, strict=True):
        if value or name in _always:
            flat += (name, _encoded(value))
    return tuple(flat)


def _together(instant: datetime) -> bytes:
    """An instant that many share, for they were received together."""
    return _in_utc(instant) if instant.tzinfo is UTC else instant_text(instant).encode()


@lru_cache(maxsize=64)
def _in_utc(instant: datetime) -> bytes:
    return instant_text(instant).encode()


def to_fields(letter: DeadLetter, *, dlq_published_at: datetime | None = None) -> Headers:
    """Everything but the payload. Texts as UTF-8, numbers in decimal, the rest as JSON; the key as it is.

    `dlq_published_at` takes the place of the letter's own: the broker's time of writing.
    """
    names, values, shared = split_fields(letter, dlq_published_at=dlq_published_at)
    if names is _own_names:
        pairs, in_order = _layout(shared)
        return in_order((*zip(_OWN, values, strict=True), *pairs))
    said = dict(zip([*names, *shared[::2]], [*values, *shared[1::2]], strict=True))
    return tuple([(name, said[raw]) for raw, name in _names.items() if raw in said])


@lru_cache(maxsize=256)
def _layout(shared: Flat) -> tuple[Headers, Callable[[Headers], Headers]]:
    """What letters share, as pairs; and how these stand in order behind what every letter has of its own."""
    pairs = tuple((_names[name], value) for name, value in zip(shared[::2], shared[1::2], strict=True))
    there = [*_OWN, *(name for name, _ in pairs)]
    return pairs, itemgetter(*(there.index(name) for name in _names.values() if name in there))


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
