"""What is too large for one message: its body, and the longest lines of its heading, in messages beside it.

The server takes so many bytes of heading and body together, and whoever exceeds that is cut off; of a heading alone it
stores 64 KiB. Letters have more to say than their messages, so both are looked at before.
"""

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from redrive.brokers.nats.errors import TooLarge
from redrive.brokers.nats.heading import BODY, FIELDS, MSG_ID, Stored
from redrive.brokers.nats.link import Letter, Link
from redrive.brokers.nats.names import part_of, token
from redrive.brokers.nats.reading import after, delete, get
from redrive.brokers.nats.streams import Stream

_LARGEST_HEADING: Final = 60_000
_LEFT: Final = 16_000  # bytes of a heading that was too large
_DIGITS: Final = 18  # of a place in a stream
_SERVERS: Final = "nats-"


class Whole(NamedTuple):
    """A message with what belongs to it, and the places in the stream of what does."""

    body: bytes
    heading: Mapping[str, str]
    parts: tuple[int, ...] = ()


async def fit(link: Link, stream: Stream, queue: str, letter: Letter) -> Letter:
    """The same, if need be without what was published beside it first. Its `Nats-Msg-Id` names the parts.

    Raises `TooLarge` where the stream takes no parts.
    """
    heading = dict(letter.heading or {})
    if letter.size - len(letter.body) > _LARGEST_HEADING:
        lines = _longest(heading)
        place = await _put(link, stream, _lines_of(queue, heading), json.dumps(lines).encode())
        heading = {name: line for name, line in heading.items() if name not in lines} | {FIELDS: str(place)}
        letter = letter._replace(heading=heading)
    if letter.size > (await link.client()).max_payload and letter.body:
        place = await _put(link, stream, _body_of(queue, heading), letter.body)
        letter = letter._replace(body=b"", heading={**heading, BODY: str(place)})
    return letter


async def whole(link: Link, stream: Stream, queue: str, body: bytes, heading: Mapping[str, str]) -> Whole:
    """A message with its parts. Anybody can name a place: only what was published as a part of this message is one."""
    parts = []
    if FIELDS in heading and (found := await _get(link, stream, heading[FIELDS], _lines_of(queue, heading))):
        heading = {**heading, **json.loads(found.body)}
        parts.append(found.seq)
    if BODY in heading and (found := await _get(link, stream, heading[BODY], _body_of(queue, heading))):
        body = found.body
        parts.append(found.seq)
    return Whole(body, heading, tuple(parts))


async def delete_whole(link: Link, stream: Stream, queue: str, one: Stored) -> bool:
    """Remove a message and what belongs to it; whether it was there."""
    found = await whole(link, stream, queue, one.body, one.heading)
    gone = await delete(link, stream, one.seq)
    for part in found.parts:
        await delete(link, stream, part)
    return gone


async def _put(link: Link, stream: Stream, subject: str, body: bytes) -> int:
    """Publish a part, or find it where it was published before; its place in the stream."""
    if not stream.takes(subject):
        wanted = f"{subject.rpartition('.')[0]}.*"
        raise TooLarge(
            f"nats: too large for one message, and stream {stream.name!r}, which others began, takes no parts: add"
            f" {wanted} to its subjects"
        )
    for known in await after(link, stream, subject, seq=1, most=1):
        if known.body == body:
            return known.seq
    return (await link.publish_one(Letter(subject, body))).seq


async def _get(link: Link, stream: Stream, place: str, subject: str) -> Stored | None:
    if not place.isdecimal() or len(place) > _DIGITS:
        return None
    found = await get(link, stream, int(place))
    return found if found is not None and found.subject == subject else None


def _longest(heading: Mapping[str, str]) -> dict[str, str]:
    """The lines without which the rest is short. The server's own stay."""
    size = sum(len(name) + len(line) for name, line in heading.items())
    found: dict[str, str] = {}
    for name, line in sorted(heading.items(), key=lambda one: len(one[0]) + len(one[1]), reverse=True):
        if size <= _LEFT:
            break
        if not name.lower().startswith(_SERVERS):
            found[name] = line
            size -= len(name) + len(line)
    return found


def _body_of(queue: str, heading: Mapping[str, str]) -> str:
    return part_of(queue, token(heading.get(MSG_ID, "")))


def _lines_of(queue: str, heading: Mapping[str, str]) -> str:
    return part_of(queue, f"{token(heading.get(MSG_ID, ''))}-heading")
