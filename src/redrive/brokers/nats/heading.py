"""Messages as NATS keeps them: a body beside a heading of printable lines, each name once.

What fits into such a line is written there, for everybody to read. What does not (bytes, line breaks, a name that
stands twice) goes into `rd-headers`, which then also keeps the order of all.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from nats.aio.msg import Msg

from redrive.core.message import RESERVED_PREFIX, Headers, Message

ALL: Final = "rd-headers"
KEY: Final = "rd-key"
EXPIRES: Final = "rd-expires"
DUE: Final = "rd-due"
BODY: Final = "rd-body"
FIELDS: Final = "rd-fields"
"""Name the messages of the same stream in which the body is, and the longest lines of the heading."""
SCHEDULER: Final = "Nats-Scheduler"
MSG_ID: Final = "Nats-Msg-Id"

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(rb"(?:[!-~](?:[ -~]*[!-~])?)?")
_NOT_THEIRS: Final = ("rd-", "nats-")
_STATUS: Final = frozenset({"Status", "Description"})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO: Final = timedelta(microseconds=1)
_LATEST: Final = 200_000_000_000_000_000
_SHORT, _LONG = 9, 11  # tokens of a reply subject, without and with a domain


class Reply(NamedTuple):
    """What the subject tells on which a delivery is answered."""

    stream: str
    seq: int
    delivered: int
    at: datetime


def read_reply(subject: str) -> Reply:
    """Take such a subject apart."""
    parts = subject.split(".")
    first = 2 if len(parts) == _SHORT else 4
    at = _EPOCH + timedelta(microseconds=int(parts[first + 5]) // 1000)
    return Reply(parts[first], int(parts[first + 3]), int(parts[first + 2]), at)


def write_heading(headers: Headers, more: Mapping[str, str] | None = None) -> dict[str, str] | None:
    """The heading for these headers, and for what else is to be said. None for none.

    Raises `TypeError` or `AttributeError` for values that are not bytes.
    """
    heading: dict[str, str] = {}
    kept: list[list[str]] = []
    plain = True
    for name, value in headers:
        if _is_writable(name, value) and name not in heading:
            heading[name] = value.decode("ascii")
            kept.append([name])
        else:
            plain = False
            kept.append([name, b64encode(value).decode()])
    if not plain:
        heading[ALL] = json.dumps(kept, separators=(",", ":"))
    if more:
        heading.update(more)
    return heading or None


def read_headers(heading: Mapping[str, str] | None) -> Headers:
    """The headers in a heading, without the server's and without ours."""
    if not heading:
        return ()
    if ALL in heading:
        try:
            kept = json.loads(heading[ALL])
            return tuple((str(one[0]), b64decode(one[1]) if len(one) > 1 else heading[one[0]].encode()) for one in kept)
        except (ValueError, LookupError, TypeError, RecursionError):  # somebody else has a header of this name
            pass
    return tuple(
        (name, value.encode())
        for name, value in heading.items()
        if not name.lower().startswith(_NOT_THEIRS) and name not in _STATUS
    )


def terms_of(message: Message) -> dict[str, str]:
    """What a heading says of a message beside its headers."""
    told = {}
    if message.key is not None:
        told[KEY] = b64encode(message.key).decode()
    if message.expires_at is not None:
        told[EXPIRES] = str(to_micros(message.expires_at))
    return told


def message_of(queue: str, *, name: str, body: bytes, heading: Mapping[str, str] | None, at: datetime) -> Message:
    """The message that was published; marks stay among its headers, for whoever may honour them."""
    if not heading:
        return Message(name, queue, body, (), None, at)
    marks = tuple((key, heading[key].encode("utf-8", "surrogatepass")) for key in heading if _is_mark(key))
    return Message(
        name,
        queue,
        body,
        read_headers(heading) + marks,
        _key(heading.get(KEY)),
        at,
        instant_of(heading.get(EXPIRES)),
    )


def to_micros(at: datetime) -> int:
    """Microseconds since 1970."""
    return (at - _EPOCH) // _MICRO


def from_micros(number: int) -> datetime:
    """The instant so many microseconds after 1970."""
    return _EPOCH + number * _MICRO


def instant_of(text: str | None) -> datetime | None:
    """An instant that a heading tells in microseconds; None for whatever else stands there."""
    if not text or not text.isdecimal() or len(text) > len(str(_LATEST)):
        return None
    return from_micros(int(text)) if int(text) < _LATEST else None


class Stored(NamedTuple):
    """A message as a stream keeps it."""

    subject: str
    seq: int
    at: datetime
    body: bytes
    heading: Mapping[str, str]


def stored(message: Msg) -> Stored:
    """What a direct get was answered with."""
    heading = message.headers or {}
    return Stored(
        heading["Nats-Subject"],
        int(heading["Nats-Sequence"]),
        rfc3339(heading["Nats-Time-Stamp"]),
        message.data,
        heading,
    )


def rfc3339(text: str) -> datetime:
    """An instant as the server writes it. Nanoseconds are cut off, as in a reply subject."""
    whole, _, rest = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{whole}.{rest[:6]:0<6}+00:00")


def is_plain(value: bytes) -> bool:
    """Whether a value can stand in a line of its own as it is."""
    return _VALUE.fullmatch(value) is not None


def _is_writable(name: str, value: bytes) -> bool:
    return (
        _NAME.fullmatch(name) is not None
        and is_plain(value)
        and not name.lower().startswith(_NOT_THEIRS)
        and name not in _STATUS
    )


def _is_mark(name: str) -> bool:
    return name.startswith(RESERVED_PREFIX) and name not in (ALL, KEY, EXPIRES, DUE, BODY, FIELDS)


def _key(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return None
