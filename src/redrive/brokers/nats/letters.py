"""Dead letters on their way into a DLQ, however large their message is."""

from datetime import datetime
from typing import Final

from redrive.brokers.nats.heading import BODY, MSG_ID, write_heading
from redrive.brokers.nats.link import Letter, Link
from redrive.brokers.nats.names import part_of, strict_of, token
from redrive.core.letter import DeadLetter
from redrive.core.message import Headers
from redrive.core.wire import bounded, entry_body, to_fields

_LAST: Final = "Nats-Expected-Last-Subject-Sequence"
_ROOM: Final = 2048  # for what stands in a heading beside the fields of a letter


async def letter_for(
    link: Link, letter: DeadLetter, *, dlq: str, strict: bool, now: datetime, into: str | None = None
) -> Letter:
    """What is to be published. A body that does not fit beside its fields is published first, on its own.

    The server's limit is for heading and body together, and whoever exceeds it is cut off: so this is looked at before.
    """
    largest = (await link.client()).max_payload
    once = f"{letter.letter_id}:{letter.generation}"
    more = {MSG_ID: once}
    subject = into or dlq
    if strict and into is None:
        subject = strict_of(dlq, letter.letter_id, letter.generation)
        more[_LAST] = "0"
    made = _made(letter, subject, more, largest=largest, now=now)
    if made.size <= largest or not letter.payload:
        return made
    part = await put_body(link, dlq, letter.payload, once=once)
    return _made(letter, subject, {**more, BODY: str(part)}, largest=largest, now=now)._replace(body=b"")


async def put_body(link: Link, queue: str, body: bytes, *, once: str) -> int:
    """Publish a body that is too large to have a heading; its place in the queue's stream."""
    found = await link.publish_one(Letter(part_of(queue, token(once)), body))
    return found.seq


def _made(letter: DeadLetter, subject: str, more: dict[str, str], *, largest: int, now: datetime) -> Letter:
    """With everything, or with as much left out as needs be for the heading alone to fit."""
    body = entry_body(letter)
    found = Letter(subject, body, write_heading(_fields(letter, now), more))
    limit = largest - _ROOM
    while found.size - len(body) > largest - _ROOM and limit > _ROOM:
        found = Letter(subject, body, write_heading(_fields(bounded(letter, limit=limit), now), more))
        limit //= 2
    return found


def _fields(letter: DeadLetter, now: datetime) -> Headers:
    return to_fields(letter, dlq_published_at=now)
