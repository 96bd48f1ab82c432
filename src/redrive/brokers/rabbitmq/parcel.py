"""A message as AMQP carries it: body, properties and a table of headers.

A table has each name once, in an order of its own, and names of 128 bytes. Where a message's headers are more than
that, they are packed into one entry beside those that others can read; where they are larger than a frame, which would
end the connection, into the body.
"""

import hashlib
import json
import struct
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from aiormq.abc import DeliveredMessage
from pamqp.commands import Basic

from redrive.core.message import RESERVED_PREFIX, Headers, Message, without_reserved

Table = dict[str, Any]

AT: Final = "rd-at"
KEY: Final = "rd-key"
LARGE_KEY: Final = "rd-large-key"
EXPIRES: Final = "rd-expires"
HEADERS: Final = "rd-headers"
PACKED: Final = "rd-packed"
STATE: Final = "rd-state"
TRAIL: Final = "rd-trail"

ROOM: Final = 100_000
"""Bytes for headers in one frame: RabbitMQ takes 131,072 for all of it."""

_NAME: Final = 128
_SMALL: Final = 4096  # bytes of a key that has its own place in the table
_SERVERS: Final = ("x-delivery-count", "x-stream-offset")
_PROPERTIES: Final = {
    "content_type": "content-type",
    "content_encoding": "content-encoding",
    "correlation_id": "correlation-id",
    "reply_to": "reply-to",
    "message_type": "type",
    "app_id": "app-id",
}
"""What others say in properties is a header for us, and a property again for whoever reads what we send on."""

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_MICRO: Final = timedelta(microseconds=1)


class Parcel(NamedTuple):
    """What is published."""

    body: bytes
    properties: Basic.Properties


class Read(NamedTuple):
    """What was delivered. `ours` is what only we write; empty for what somebody else has published."""

    message: Message
    ours: Table
    has_id: bool = True


def to_micros(at: datetime) -> int:
    """Microseconds since 1970."""
    return (at - _EPOCH) // _MICRO


def from_micros(number: int) -> datetime:
    """The instant so many microseconds after 1970."""
    return _EPOCH + number * _MICRO


def write(message: Message, *, ours: Table | None = None) -> Parcel:
    """A message with its headers as they are, and what we know of it beside them.

    Raises `ValueError` or `TypeError` for headers that are none.
    """
    headers, body = message.headers, bytes(message.body)
    table: Table = dict(ours or ())
    table[AT] = 0 if message.published_at is None else to_micros(message.published_at)
    if message.key is not None and len(message.key) <= _SMALL:
        table[KEY] = bytearray(message.key)
    elif message.key is not None:
        headers = (*headers, (LARGE_KEY, bytes(message.key)))
    if message.expires_at is not None:
        table[EXPIRES] = to_micros(message.expires_at)
    if headers:
        body = _lay_out(headers, table, body)
    named = dict(reversed(headers)) if headers else {}
    known: dict[str, Any] = {name: _short(named.get(header)) for name, header in _PROPERTIES.items()} if named else {}
    properties = Basic.Properties(
        message_id=message.id, delivery_mode=2, timestamp=message.published_at, headers=table, **known
    )
    return Parcel(body, properties)


def _lay_out(headers: Headers, table: Table, body: bytes) -> bytes:
    """Put headers where they fit; return the body, which has them in it if nothing else does."""
    plain = {name: _as_text(value) for name, value in headers}
    ours = len(table.get(TRAIL, b"")) + len(table.get(KEY, b""))
    size = sum(len(name) + len(value) + 8 for name, value in headers) + ours
    as_they_are = len(plain) == len(headers) and list(plain) == sorted(plain) and _fit(plain)
    if as_they_are and size <= ROOM:
        table.update(plain)
        return body
    packed = pack(headers)
    if size + len(packed) <= ROOM:
        if _fit(plain):
            table.update(plain)
        table[HEADERS] = bytearray(packed)
        return body
    if len(packed) + ours <= ROOM:
        table[HEADERS] = bytearray(packed)
        return body
    table[PACKED] = len(packed)
    return packed + body


def _fit(plain: Table) -> bool:
    return not any(
        len(name.encode()) > _NAME
        or not name
        or name.startswith(("x-", AT, KEY, LARGE_KEY, EXPIRES, HEADERS, PACKED, STATE, TRAIL))
        for name in plain
    )


def read(delivered: DeliveredMessage, *, queue: str, now: datetime) -> Read:
    """What was delivered, ours or not."""
    properties = delivered.header.properties
    table: Table = properties.headers or {}
    body, given = delivered.body, properties.message_id or ""
    if AT not in table:
        return _foreign(body, properties, table, queue=queue, now=now)
    if PACKED in table:
        size = int(table[PACKED])
        headers, body = unpack(body[:size]), body[size:]
    elif HEADERS in table:
        headers = unpack(bytes(table[HEADERS]))
    elif len(table) == 1:
        headers = ()
    else:
        headers = tuple(
            (name, _as_bytes(value))
            for name, value in table.items()
            if name[:3] != RESERVED_PREFIX and name[:2] != "x-"
        )
    message = Message(
        given,
        queue,
        body,
        without_reserved(headers) if headers else (),
        bytes(table[KEY]) if KEY in table else dict(headers).get(LARGE_KEY) if headers else None,
        from_micros(table[AT]) if table[AT] else properties.timestamp or now,
        from_micros(table[EXPIRES]) if EXPIRES in table else None,
    )
    return Read(message, table, bool(given))


def _foreign(body: bytes, properties: Basic.Properties, table: Table, *, queue: str, now: datetime) -> Read:
    """A message of somebody else.

    An id that its producer has chosen is not trusted to be unique by itself, and may say what is nobody's business:
    ids are in logs and letters. It is kept as a header.
    """
    headers = [(name, _as_bytes(value)) for name, value in table.items() if name not in _SERVERS]
    named = {name for name, _ in headers}
    for name, header in (*_PROPERTIES.items(), ("message_id", "message-id")):
        text = getattr(properties, name, None)
        if text and header not in named:
            headers.append((header, str(text).encode("utf-8", "surrogatepass")))
    given = properties.message_id
    chosen = _id_of(given, body) if given else ""
    at = properties.timestamp
    published_at = (at if at.tzinfo else at.replace(tzinfo=UTC)) if isinstance(at, datetime) else now
    message = Message(chosen, queue, body, without_reserved(tuple(headers)), None, published_at)
    return Read(message, {}, bool(given))


def _id_of(given: str, body: bytes) -> str:
    """An id that is the same whoever reads a message, and gives away neither its producer's id nor its body."""
    name = given.encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"%d:%b%b" % (len(name), name, body)).hexdigest()[:32]


def pack(headers: Headers) -> bytes:
    """Headers in their order, byte for byte. Raises `ValueError` or `TypeError` for what are none."""
    parts = [struct.pack(">I", len(headers))]
    for name, value in headers:
        raw = name.encode()
        parts += (struct.pack(">II", len(raw), len(value)), raw, memoryview(value).tobytes())
    return b"".join(parts)


def unpack(raw: bytes) -> Headers:
    """What `pack` wrote."""
    (count,), at, headers = struct.unpack_from(">I", raw), 4, []
    for _ in range(count):
        name, value = struct.unpack_from(">II", raw, at)
        at += 8
        headers.append((raw[at : at + name].decode(), raw[at + name : at + name + value]))
        at += name + value
    return tuple(headers)


def _as_text(value: bytes) -> str | bytearray:
    """A value as others can read it, where it is text."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return bytearray(value)


def _as_bytes(value: Any) -> bytes:
    """A value of a table, which may have a type of its own."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if value is None:
        return b""
    if isinstance(value, datetime):
        return value.isoformat().encode()
    return json.dumps(value, default=str, separators=(",", ":")).encode()


def _short(value: bytes | None) -> str | None:
    """A header that may stand in a property."""
    if value is None or len(value) > _NAME:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
