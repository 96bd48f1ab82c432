"""Stream entries and messages: any entry that anyone wrote is a message, and goes back as it came, byte for byte.

The payload field is the body, every other field a header. Where the payload did not stand first, the header
`rd-payload-at` stands in its place, for the way back; and where there was none and the whole field map is the body, it
says so.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from redrive.brokers.redis.address import MAP, PAYLOAD
from redrive.brokers.redis.pieces import joined
from redrive.core.marks import ATTEMPTS, GENERATION, GROUP, LETTER, ORIGIN, QUEUE
from redrive.core.message import Headers, Message

KEY: Final = "rd-key"
EXPIRES: Final = "rd-expires"  # milliseconds since 1970
ID: Final = "rd-id"  # the name given to a message that was published with a delay
ENTRY: Final = "rd-entry"  # the id of its entry: that name is good nowhere else
DUE: Final = "rd-due"  # when a message that was published with a delay was to be handed out, in milliseconds since 1970
PAYLOAD_AT: Final = "rd-payload-at"
HERE: Final = b"here"
IN_MAP: Final = b"map"

OWN_PAYLOAD: Final = PAYLOAD.encode()
"""What the payload is called in what we write for each other and for people, whatever the queue calls its own."""

_OURS: Final = frozenset({KEY, EXPIRES, ID, ENTRY, DUE})
_DUE: Final = DUE.encode()
_MARKS: Final = frozenset({LETTER, GENERATION, QUEUE, GROUP, ORIGIN, ATTEMPTS})
_MILLISECOND: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_HIDDEN: Final = _OURS | _MARKS
_WHOLE_MAP: Final = MAP.encode()
_LET_IN: Final = 4  # the fields that are added to an entry that has waited: names and values
_LETTER: Final = b"original_message_id"
_OUR_LETTER: Final = frozenset({b"letter_id", b"reason", b"original_message_id"})

Fields = Sequence[bytes]
"""Names and values of an entry, in turn, as Redis gives them."""


def read_entry(entry_id: bytes, fields: Fields, *, queue: str, payload: bytes) -> Message:
    """An entry as a message. Never raises: whatever stands there can be handled, or given up with its bytes."""
    body, headers = _body_and_headers(fields, payload)
    ours = {name: value for name, value in headers if name in _HIDDEN}
    given = ours.get(ID, entry_id) if ours.get(ENTRY) == entry_id else entry_id
    return Message(
        id=_text(given),
        queue=queue,
        body=body,
        headers=tuple(pair for pair in headers if pair[0] not in _HIDDEN) if ours else headers,
        key=ours.get(KEY),
        published_at=published_at(given),
        expires_at=_instant(ours.get(EXPIRES)),
    )


def due_of(fields: Fields) -> datetime | None:
    """When an entry that had waited was due: the first of the two fields that it got when it was let in."""
    return _instant(fields[-3]) if len(fields) >= _LET_IN and fields[-4] == _DUE else None


def write_entry(message: Message, *, payload: bytes) -> list[bytes]:
    """A message as the fields of an entry: what was read by `read_entry` comes back in its order."""
    headers, at, place = message.headers, HERE, 0
    for here, (name, value) in enumerate(headers):
        if name == PAYLOAD_AT:
            at, place = value, here
            headers = (*headers[:place], *headers[place + 1 :])
            break
    if at == IN_MAP:
        fields = _fields_of(message.body, headers)
    else:
        pairs = [(name_bytes(name), value) for name, value in headers]
        own = payload if payload != _WHOLE_MAP else OWN_PAYLOAD
        pairs.insert(place, (own, message.body))
        fields = [part for pair in pairs for part in pair]
    if message.key is not None:
        fields += (KEY.encode(), message.key)
    if message.expires_at is not None:
        fields += (EXPIRES.encode(), _millis(message.expires_at))
    return fields


def given_id(message: Message, entry_id: bytes) -> list[bytes]:
    """The fields by which a message in this entry keeps the id that it was given; none for one that has the entry's."""
    given = message.id.encode()
    return [] if given == entry_id else [ID.encode(), given, ENTRY.encode(), entry_id]


def without_marks(headers: Headers) -> Headers:
    """Headers without the marks of a redrive and what `write_entry` writes itself; the payload's place stays."""
    return tuple(pair for pair in headers if pair[0] not in _HIDDEN)


def published_at(entry_id: bytes) -> datetime:
    """When an entry was added, as its id says; the earliest instant for an id that somebody made up."""
    try:
        return _at(int(entry_id.partition(b"-")[0]))
    except (ValueError, OverflowError, OSError):
        return _EPOCH


def as_millis(instant: datetime) -> int:
    """Milliseconds since 1970."""
    return round(instant.timestamp() * 1000)


def whole_millis(duration: timedelta) -> int:
    """A duration in milliseconds, rounded up: what waits for it never comes early."""
    return -(-duration // _MILLISECOND)


def from_millis(millis: float | bytes | None) -> datetime | None:
    """The instant of milliseconds since 1970; None for none."""
    return None if millis is None or millis == b"" else _at(millis)


@lru_cache(maxsize=256)
def _at(millis: float | bytes) -> datetime:
    """Remembered, because messages that were added together, or fall due together, share their millisecond."""
    return datetime.fromtimestamp(float(millis) / 1000, UTC)


def _body_and_headers(fields: Fields, payload: bytes) -> tuple[bytes, Headers]:
    names = fields[::2]
    if _OUR_LETTER.issubset(names):
        fields = joined(fields)
    pairs = list(zip(fields[::2], fields[1::2], strict=True))
    if payload not in names and _LETTER in names:
        payload = OWN_PAYLOAD
    for place, (name, value) in enumerate(pairs):
        if name == payload != _WHOLE_MAP:
            before, after = ([(_name(name), one) for name, one in some] for some in (pairs[:place], pairs[place + 1 :]))
            return value, (*before, (PAYLOAD_AT, HERE), *after) if before else tuple(after)
    headers = tuple((_name(name), value) for name, value in pairs)
    return _map(headers), ((PAYLOAD_AT, IN_MAP), *headers)


def _map(headers: Headers) -> bytes:
    """The field map as a JSON object; what is not UTF-8 is escaped there, and exact in the headers."""
    shown = {
        name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"): value.decode(
            "utf-8", "backslashreplace"
        )
        for name, value in reversed(headers)
        if name not in _HIDDEN
    }
    return json.dumps(dict(reversed(shown.items())), ensure_ascii=False, separators=(",", ":")).encode()


def _fields_of(body: bytes, headers: Headers) -> list[bytes]:
    """The original fields; or, if the object was edited, what stands in it now."""
    if body == _map(headers):
        return [part for name, value in headers for part in (name_bytes(name), value)]
    try:
        edited = json.loads(body)
    except (ValueError, RecursionError):
        edited = None
    if not isinstance(edited, dict) or not edited:
        return [OWN_PAYLOAD, body]
    shown = {name: value if isinstance(value, str) else json.dumps(value) for name, value in edited.items()}
    return [part for name, value in shown.items() for part in (name.encode(), value.encode())]


def _millis(instant: datetime) -> bytes:
    """Milliseconds since 1970, with as many decimals as an instant needs."""
    whole, micros = divmod((instant - _EPOCH) // timedelta(microseconds=1), 1000)
    return b"%d.%03d" % (whole, micros) if micros else b"%d" % whole


def _name(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def name_bytes(name: str) -> bytes:
    """The name of a field, as it was read."""
    return name.encode("utf-8", "surrogateescape")


def _text(raw: bytes | None) -> str:
    return "" if raw is None else raw.decode("utf-8", "backslashreplace")


def _instant(raw: bytes | None) -> datetime | None:
    try:
        return from_millis(raw)
    except (ValueError, OverflowError, OSError):
        return None
