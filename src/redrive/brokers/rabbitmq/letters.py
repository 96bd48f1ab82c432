"""A letter as an entry of a DLQ: the body is the payload, byte for byte, the headers say the rest."""

import hashlib
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Final
from uuid import uuid4

from aiormq.abc import DeliveredMessage

from redrive.brokers.dlq_entry import letter_in
from redrive.brokers.rabbitmq.parcel import Parcel, read, to_micros, write
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.wire import entry_body, to_fields

_NUMBERS: Final = count()  # for what one process writes within a microsecond


def letter_parcel(letter: DeadLetter, *, dlq: str, now: datetime) -> Parcel:
    """What is written into a DLQ."""
    fields = tuple(sorted(to_fields(letter, dlq_published_at=now)))  # as a table has them
    return write(Message(entry_id(now), dlq, entry_body(letter), fields, letter.key, now))


def entry_id(now: datetime) -> str:
    """An id that grows with time, so that a look can go on behind an entry that has left."""
    return f"{to_micros(now):016x}-{next(_NUMBERS):08x}-{uuid4().hex[:8]}"


def message_of(delivered: DeliveredMessage, *, dlq: str, now: datetime) -> Message:
    """An entry, whoever has written it. One without an id is known by what is in it."""
    message = read(delivered, queue=dlq, now=now).message
    if message.id:
        return message
    seen = hashlib.sha256(repr((message.body, message.headers)).encode("utf-8", "surrogatepass"))
    return message._replace(id=f"~{seen.hexdigest()[:32]}")


def letter_of(entry: Message, *, queue: str, broker: str) -> DeadLetter:
    """The letter in an entry."""
    letter = letter_in(entry, queue=queue, broker=broker)
    return letter if letter.dlq_published_at else replace(letter, dlq_published_at=entry.published_at)
