"""Messages as rows, and rows as deliveries: the two translations that are made for every message.

A worker fetches hundreds at a time, so tuples are made directly by `tuple.__new__`: calling a NamedTuple's own
constructor costs three times as much.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from redrive.brokers.sqlite.schema import SEQ_MASK, row_id
from redrive.brokers.sqlite.transaction import as_instant, as_micros
from redrive.core.delivery import Delivery
from redrive.core.message import Headers, Message

Row = tuple[int | None, bytes | None, bytes | None, bytes]
"""What a producer gives: expires_at, key, headers, body."""

Token = tuple[int, int, bool]
"""What a delivery carries for us: its hold, its row, and whether that row is in `tracked`."""

_new: Final = tuple.__new__


class Lane(NamedTuple):
    """A group's own copy of a queue."""

    id: int
    queue: str
    group: str
    incarnation: str

    @property
    def first(self) -> int:
        """The number before the lane's first row."""
        return row_id(self.id, 0)

    @property
    def last(self) -> int:
        """The number of the last row that the lane could ever have."""
        return row_id(self.id, SEQ_MASK)


def message_id(incarnation: str, seq: int) -> str:
    """The name of a message: the same in every lane of its queue, never given twice."""
    return f"{incarnation}-{seq}"


def as_row(message: Message) -> Row:
    """A message as it is kept. Raises `TypeError` or `ValueError` for what is not a message."""
    key = None if message.key is None else _as_bytes(message.key)
    return as_micros(message.expires_at), key, dump_headers(message.headers), _as_bytes(message.body)


def _as_bytes(value: bytes) -> bytes:
    return value if isinstance(value, bytes) else bytes(memoryview(value))  # not bytes(7), which is seven zeros


def dump_headers(headers: Headers) -> bytes | None:
    """Headers as JSON text, byte-exact: each byte of a value is one character."""
    if not headers:
        return None
    return json.dumps([[name, str(value, "latin-1")] for name, value in headers]).encode()


def load_headers(raw: bytes | None) -> Headers:
    """Headers from what `dump_headers` made of them."""
    if not raw:
        return ()
    return tuple((name, value.encode("latin-1")) for name, value in json.loads(raw))


def fresh_deliveries(lane: Lane, rows: Sequence[tuple[Any, ...]], *, hold: int, at: datetime) -> list[Delivery]:
    """Deliveries of rows (id, published_at, expires_at, key, headers, body) of `fresh`."""
    _, queue, group, incarnation = lane
    published: dict[int, datetime] = {}  # messages sent together share their instant
    deliveries = []
    for row, micros, expires_at, key, headers, body in rows:
        published_at = published.get(micros)
        if published_at is None:
            published_at = published[micros] = as_instant(micros)
        message = _new(
            Message,
            (
                f"{incarnation}-{row & SEQ_MASK}",
                queue,
                body,
                load_headers(headers) if headers else (),
                key,
                published_at,
                None if expires_at is None else as_instant(expires_at),
                "",
            ),
        )
        token = (hold, row, False)
        deliveries.append(
            _new(Delivery, (message, group, at, 0, 0, 0, None, None, None, b"", False, None, token, None))
        )
    return deliveries


TRACKED: Final = (
    "id, failures, crashes, generation, letter_id, attempts_allowed, first_attempt_at, trail, "
    "origin, published_at, expires_at, key, headers, body, due_at"
)


def tracked_delivery(lane: Lane, row: tuple[Any, ...], *, hold: int, at: datetime, alone: bool = False) -> Delivery:
    """The delivery of a row of `tracked` with the columns `TRACKED`."""
    number, failures, crashes, generation, letter_id, allowed, first_at, trail, *told = row
    origin, published_at, expires_at, key, headers, body, due_at = told
    return Delivery(
        message=Message(
            id=message_id(lane.incarnation, number & SEQ_MASK),
            queue=lane.queue,
            body=body,
            headers=load_headers(headers),
            key=key,
            published_at=as_instant(published_at),
            expires_at=as_instant(expires_at),
            origin=origin or "",
        ),
        group=lane.group,
        received_at=at,
        failures=failures,
        crashes=crashes,
        generation=generation,
        letter_id=letter_id,
        attempts_allowed=allowed,
        first_attempt_at=as_instant(first_at),
        trail=trail or b"",
        alone=alone,
        token=(hold, number, True),
        due_at=None if alone or (letter_id is not None and not failures) else as_instant(due_at),
    )
