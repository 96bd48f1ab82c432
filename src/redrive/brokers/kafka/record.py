"""Records as Kafka keeps them, and messages as we know them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from redrive.core.message import RESERVED_PREFIX, Headers, Message, without_reserved

Settings: TypeAlias = dict[str, str | int | float | bool]
Place: TypeAlias = tuple[str, int]
"""A topic and one of its partitions."""

STATE: Final = "rd-state"
TRAIL: Final = "rd-trail"
DUE: Final = "rd-due"
EXPIRES: Final = "rd-expires"
ANY: Final = -1
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO: Final = timedelta(microseconds=1)
_LARGEST: Final = 200_000_000_000_000_000  # microseconds: about the year 8300


class Record(NamedTuple):
    """What is to be written. The timestamp is in milliseconds; 0 lets the client choose it."""

    topic: str
    value: bytes | None
    headers: Headers = ()
    key: bytes | None = None
    partition: int = ANY
    timestamp: int = 0


class State(msgspec.Struct, omit_defaults=True):
    """What is written beside a copy of a message: who it is, and what has become of it. Instants in microseconds."""

    id: str = ""
    queue: str = ""
    origin: str = ""
    published: int | None = None
    expires: int | None = None
    due: int | None = None
    first: int | None = None
    failures: int = 0
    crashes: int = 0
    generation: int = 0
    letter: str | None = None
    attempts: int | None = None
    group: str = ""


_decode_state: Final = msgspec.json.Decoder(State).decode


class Read(NamedTuple):
    """What was read."""

    topic: str
    partition: int
    offset: int
    value: bytes
    headers: Headers
    key: bytes | None
    timestamp: int

    @property
    def id(self) -> str:
        """The name of a message of which this is the first copy."""
        return f"{self.topic}-{self.partition}-{self.offset}"

    @property
    def at(self) -> datetime:
        """When it was written, as its producer or the broker says."""
        return at_millis(self.timestamp)


def headers_of(found: Iterable[tuple[str, Any]]) -> Headers:
    """Headers as messages carry them; one without a value has an empty one."""
    return tuple([(name, value or b"") for name, value in found])


def read_of(message: Any) -> Read:
    """What a client handed over. A tombstone has an empty value here."""
    headers = headers_of(message.headers() or ())
    offset, (_, timestamp) = message.offset(), message.timestamp()
    return Read(message.topic(), message.partition(), offset, message.value() or b"", headers, message.key(), timestamp)


def at_millis(number: int) -> datetime:
    """The instant so many milliseconds after 1970; a record without a time is from then, and none from beyond all time.

    Producers say when a record was written, and may say anything.
    """
    return _EPOCH + timedelta(milliseconds=min(max(number, 0), _LARGEST // 1000))


def to_micros(at: datetime) -> int:
    """Microseconds since 1970."""
    return (at - _EPOCH) // _MICRO


def from_micros(number: int) -> datetime:
    """The instant so many microseconds after 1970."""
    return _EPOCH + number * _MICRO


def to_millis(at: datetime) -> int:
    """Milliseconds since 1970, as Kafka counts."""
    return to_micros(at) // 1000


def plain_record(message: Message, *, now: datetime, due_at: datetime | None = None) -> Record:
    """A first copy, for a queue. What our own headers say in it was not written by us."""
    headers = list(without_reserved(message.headers))
    if due_at is not None:
        headers.append((DUE, b"%d" % to_micros(due_at)))
    if message.expires_at is not None:
        headers.append((EXPIRES, b"%d" % to_micros(message.expires_at)))
    return Record(message.queue, bytes(message.body), tuple(headers), message.key, timestamp=to_millis(now))


def plain_message(read: Read) -> Message:
    """The message in a queue."""
    headers = read.headers
    expires_at = None
    if any(name.startswith(RESERVED_PREFIX) for name, _ in headers):
        expires_at = instant_in(headers, EXPIRES)
        headers = without_reserved(headers)
    return Message(read.id, read.topic, read.value, headers, read.key, read.at, expires_at)


def instant_in(headers: Headers, name: str) -> datetime | None:
    """An instant that one of our headers tells; None for whatever else stands there."""
    for found, value in headers:
        if found == name and value.isdigit() and int(value) < _LARGEST:
            return from_micros(int(value))
    return None


def state_in(headers: Headers) -> dict[str, Any]:
    """What we wrote beside a copy of a message; empty for what is none."""
    for name, value in headers:
        if name == STATE:
            return load_state(bytes(value))
    return {}


def last_state_in(headers: Sequence[tuple[str, Any]]) -> State | None:
    """The same of a copy that has it behind all others, as we write it; None for any that must be looked at closer."""
    if not headers or headers[-1][0] != STATE or not headers[-1][1]:
        return None
    try:
        return _decode_state(headers[-1][1])
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None


def dump_state(state: State | Mapping[str, Any]) -> bytes:
    """What we write beside a copy of a message, as JSON; in ASCII if it holds what UTF-8 cannot say."""
    try:
        return _encode(state)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(state), separators=(",", ":")).encode()


def load_state(raw: bytes) -> dict[str, Any]:
    """What `dump_state` wrote; empty for anything else."""
    try:
        found = _decode(raw)
    except (msgspec.DecodeError, RecursionError, ValueError):
        try:
            found = json.loads(raw.decode())
        except (RecursionError, ValueError):
            return {}
    return found if isinstance(found, dict) else {}
