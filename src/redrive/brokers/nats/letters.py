"""Dead letters on their way into a DLQ, however large their message is."""

from datetime import datetime
from typing import Final

from redrive.brokers.nats.heading import MSG_ID, write_heading
from redrive.brokers.nats.link import Letter, Link
from redrive.brokers.nats.names import strict_of
from redrive.brokers.nats.parts import fit
from redrive.brokers.nats.streams import Stream
from redrive.core.letter import DeadLetter
from redrive.core.message import Headers
from redrive.core.wire import bounded, entry_body, to_fields

_LAST: Final = "Nats-Expected-Last-Subject-Sequence"


async def letter_for(
    link: Link, letter: DeadLetter, *, stream: Stream, dlq: str, strict: bool, now: datetime
) -> Letter:
    """What is to be published. What does not fit into one message is published first, beside it."""
    more = {MSG_ID: f"{letter.letter_id}:{letter.generation}"}
    subject = dlq
    if strict:
        subject = strict_of(dlq, letter.letter_id, letter.generation)
        more[_LAST] = "0"
    largest = (await link.client()).max_payload
    return await fit(link, stream, dlq, _made(letter, subject, more, largest=largest // 2, now=now))


def _made(letter: DeadLetter, subject: str, more: dict[str, str], *, largest: int, now: datetime) -> Letter:
    """With everything, or with as much left out as needs be for the heading alone to fit into this many bytes."""
    body = entry_body(letter)
    found = Letter(subject, body, write_heading(_fields(letter, now), more))
    limit = largest
    while found.size - len(body) > largest and limit:
        found = Letter(subject, body, write_heading(_fields(bounded(letter, limit=limit), now), more))
        limit //= 2
    return found


def _fields(letter: DeadLetter, now: datetime) -> Headers:
    return to_fields(letter, dlq_published_at=now)
