"""Entries of a group's private lane: self-contained, of few fields however many the message has.

Scripts write and read them too, so lists of bytes travel as JSON in which each byte is one character.
"""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from redrive.brokers.redis.entry import Fields, read_entry, without_marks, write_entry
from redrive.brokers.redis.pieces import in_pieces, joined
from redrive.core.message import Message
from redrive.core.redrive import SendBack

FIELDS: Final = b"fields"
MARKS: Final = b"marks"
BODY: Final = b"rd-payload"
"""What the payload is called in here, whatever the queue calls it: who sends back need not know."""
BACK: Final = "back-"
"""In front of an entry's id, it is the id of a message that was sent back: no entry of the queue is called so."""


class Lane(NamedTuple):
    """What an entry of the lane holds. A message that only moved here keeps its id and has no letter."""

    message: Message
    generation: int = 0
    letter_id: str | None = None
    attempts_allowed: int | None = None


def dump_list(values: Sequence[bytes]) -> bytes:
    """A list of bytes as JSON, each byte one character."""
    return json.dumps([str(value, "latin-1") for value in values], ensure_ascii=False).encode("latin-1")


def load_list(raw: bytes) -> list[bytes]:
    """A list of bytes from what `dump_list`, or a script, made of it."""
    return [value.encode("latin-1") for value in json.loads(raw.decode("latin-1"))]


def write_lane(item: SendBack, *, largest: int) -> list[bytes]:
    """The fields of the lane's entry for a letter that is sent back, none of them larger than this."""
    message = Message("", item.queue, item.body, without_marks(item.headers), item.key)
    marks = [b"", b"0", b"", b"", b""]
    if item.marked:
        allowed = b"" if item.attempts_allowed is None else b"%d" % item.attempts_allowed
        marks = [_bytes(item.letter_id), b"%d" % item.generation, allowed, _bytes(item.origin), b""]
    fields = [FIELDS, dump_list(write_entry(message, payload=BODY)), MARKS, dump_list(marks)]
    return in_pieces(fields, largest=largest)


def read_lane(entry_id: bytes, fields: Fields, *, queue: str, payload: bytes) -> Lane:
    """An entry of the lane. Never raises: what somebody else wrote there is a message like any other."""
    try:
        return _read_own(entry_id, joined(fields), queue=queue, payload=payload)
    except (KeyError, TypeError, ValueError, AttributeError):
        message = read_entry(entry_id, fields, queue=queue, payload=payload)
        return Lane(message._replace(id=BACK + entry_id.decode()))


def _read_own(entry_id: bytes, fields: Fields, *, queue: str, payload: bytes) -> Lane:
    raw = dict(zip(fields[::2], fields[1::2], strict=True))
    letter_id, generation, allowed, origin, first_entry = load_list(raw[MARKS])
    inside = load_list(raw[FIELDS])
    named = BODY if BODY in inside[::2] else payload
    message = read_entry(first_entry or entry_id, inside, queue=queue, payload=named)
    if not first_entry:
        message = message._replace(id=BACK + entry_id.decode(), origin=_text(origin))
    return Lane(message, int(generation), _text(letter_id) or None, int(allowed) if allowed else None)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")
