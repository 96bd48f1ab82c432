"""What the server hands out, as deliveries.

A worker fetches hundreds at a time, so tuples are made directly by `tuple.__new__`: calling a NamedTuple's own
constructor costs three times as much.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from redrive.brokers.redis.entry import Fields, due_of, from_millis, published_at, read_entry
from redrive.brokers.redis.lane import Lane, read_lane
from redrive.core.attempt import Attempt, dump_trail, extend_trail, load_trail
from redrive.core.delivery import Delivery
from redrive.core.message import Message

Entry = tuple[bytes, Fields | None]

_new: Final = tuple.__new__
_ENTRY: Final = 2
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class Token(NamedTuple):
    """What a delivery with a story carries for us; one that is new carries the id of its entry."""

    member: bytes
    deliveries: int
    alone: bool = False


class Reader(NamedTuple):
    """How entries of a queue are read for one group."""

    queue: str
    group: str
    payload: bytes

    def fresh(self, entries: Sequence[Entry], *, at: datetime) -> list[Delivery]:
        """New entries of the stream. One that was taken from the stream meanwhile comes without fields: passed over."""
        queue, group, payload = self
        published: dict[bytes, datetime] = {}  # entries added together share their instant
        deliveries = []
        for entry_id, fields in entries:
            if fields is None:
                continue
            if len(fields) == _ENTRY and fields[0] == payload:
                millis = entry_id[:-2]
                when = published.get(millis)
                if when is None:
                    when = published[millis] = published_at(entry_id)
                message, due_at = _new(Message, (entry_id.decode(), queue, fields[1], (), None, when, None, "")), None
            else:
                message, due_at = read_entry(entry_id, fields, queue=queue, payload=payload), due_of(fields)
            deliveries.append(
                _new(Delivery, (message, group, at, 0, 0, 0, None, None, None, b"", False, None, entry_id, due_at))
            )
        return deliveries

    def told(self, row: Sequence[Any], *, at: datetime, alone: bool = False) -> Delivery:
        """A message with a story, as the scripts tell it."""
        member, count, failures, crashes, first_at, trail, fields, notes, due = row
        queue, group, payload = self
        if len(fields) == _ENTRY and fields[0] == payload and member[:1] == b"m":
            entry_id, generation, letter_id, allowed = member[1:], 0, None, None
            when = published_at(entry_id)
            message = _new(Message, (entry_id.decode(), queue, fields[1], (), None, when, None, ""))
        else:
            message, generation, letter_id, allowed = self._read(member, fields)
        first, due_at, token = from_millis(first_at), from_millis(due), _new(Token, (member, count, alone))
        story = failures, crashes, generation, letter_id, allowed, first, trail, alone, None, token, due_at
        delivery: Delivery = _new(Delivery, (message, group, at, *story))
        return _with_crashes(delivery, notes) if notes else delivery

    def _read(self, member: bytes, fields: Fields) -> Lane:
        if member.startswith(b"l"):
            return read_lane(member[1:], fields, queue=self.queue, payload=self.payload)
        return Lane(read_entry(member[1:], fields, queue=self.queue, payload=self.payload))


def _with_crashes(delivery: Delivery, notes: Sequence[bytes]) -> Delivery:
    """Add the crashes that no trail tells of yet."""
    trail = load_trail(delivery.trail)
    told = len(notes) // 4
    for place in range(told):
        owner, began, ended, how = notes[place * 4 : place * 4 + 4]
        trail = extend_trail(
            trail,
            Attempt(
                number=delivery.attempt - told + place,
                started_at=from_millis(began) or _EPOCH,
                ended_at=from_millis(ended) or _EPOCH,
                error_type="WorkerCrash",
                error_message=how.decode("utf-8", "backslashreplace"),
                crash=True,
                node=owner.decode("utf-8", "backslashreplace"),
                generation=delivery.generation,
            ),
        )
    return delivery._replace(trail=dump_trail(trail))
