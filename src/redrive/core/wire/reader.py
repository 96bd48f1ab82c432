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
from redrive.core.wire.record import USUAL_NAMES, Entry, Original, from_record

_FORMS = (
    (b'"dlq_metadata"', from_embedded),
    (b'"validation_error"', from_digest),
    (b'"original_event"', from_event),
    (b'"letter_id"', from_json),
)


def read_letter(
    body: bytes, headers: Headers, *, queue: str, entry_id: str, now: datetime, broker: str = ""
) -> DeadLetter:
    """The letter in an entry of a DLQ. Never raises: what is no known form becomes a letter of unknown reason.

    The entry gives what a foreign letter does not say: its queue, and `now` (the entry's own time, if it has one) as
    the time of failure. Its identity comes from the entry, so that reading it again gives the same letter.
    """
    entry = Entry(queue, entry_id, now, broker)
    names = {name for name, _ in headers}
    if "letter_id" in names:
        return from_fields(headers, body, entry=entry)
    letter = _read_body(body, entry)
    if letter is None and names.isdisjoint(USUAL_NAMES):
        return from_record({}, Original(body, headers=headers), entry=entry)
    if letter is None:
        return from_fields(headers, body, entry=entry)
    if letter.headers or letter.payload is None:
        return letter
    return replace(letter, headers=headers)


def _read_body(body: bytes, entry: Entry) -> DeadLetter | None:
    for mark, read in _FORMS:
        if mark in body:
            try:
                return read(body, entry=entry)
            except (ValueError, RecursionError):
                continue
    return None
