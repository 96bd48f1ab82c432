"""Reading a letter in whatever form it is found."""

from dataclasses import replace
from datetime import datetime

from redrive.core.letter import DeadLetter
from redrive.core.message import Headers
from redrive.core.wire.digest import from_digest
from redrive.core.wire.document import from_json
from redrive.core.wire.embedded import from_embedded
from redrive.core.wire.event import from_event
from redrive.core.wire.fields import from_fields
from redrive.core.wire.kafka_headers import from_kafka_headers, is_foreign
from redrive.core.wire.record import USUAL_NAMES, Entry, Original, from_record
from redrive.core.wire.x_death import from_x_death, has_died

_FORMS = (
    (b'"dlq_metadata"', from_embedded),
    (b'"validation_error"', from_digest),
    (b'"original_event"', from_event),
    (b'"letter_id"', from_json),
)


def read_letter(
    body: bytes,
    headers: Headers,
    *,
    queue: str,
    entry_id: str,
    now: datetime,
    broker: str = "",
    key: bytes | None = None,
) -> DeadLetter:
    """The letter in an entry of a DLQ. Never raises: what is no known form becomes a letter of unknown reason.

    The entry gives what a foreign letter does not say: its queue, and `now` (the entry's own time, if it has one) as
    the time of failure, and its key. Its identity comes from the entry, so that reading it again gives the same letter.
    """
    entry = Entry(queue, entry_id, now, broker)
    if any(name == "letter_id" for name, _ in headers):
        return from_fields(headers, body, entry=entry)
    letter = _read_body(body, entry)
    if letter is None:
        letter = _read_headers(headers, body, entry)
    elif not letter.headers and letter.payload is not None:
        letter = replace(letter, headers=headers)
    return letter if key is None or letter.key is not None else replace(letter, key=key)


def _read_headers(headers: Headers, body: bytes, entry: Entry) -> DeadLetter:
    if is_foreign(headers):
        return from_kafka_headers(headers, body, entry=entry)
    if has_died(headers):
        return from_x_death(headers, body, entry=entry)
    if any(name in USUAL_NAMES for name, _ in headers):
        return from_fields(headers, body, entry=entry)
    return from_record({}, Original(body, headers=headers), entry=entry)


def _read_body(body: bytes, entry: Entry) -> DeadLetter | None:
    for mark, read in _FORMS:
        if mark in body:
            try:
                return read(body, entry=entry)
            except (ValueError, RecursionError):
                continue
    return None
