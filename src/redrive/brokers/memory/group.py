"""A group's share of a queue: one entry per message, each in exactly one place."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, auto

from redrive.core.attempt import Attempt, dump_trail, extend_trail, load_trail
from redrive.core.delivery import Delivery
from redrive.core.message import Message
from redrive.core.outcome import Settled
from redrive.core.ports import Alive, Obituary

REMEMBERED = 10_000  # answers kept for settlements that are sent twice


class Place(Enum):
    """Where a message of a group is. Done and dead messages have left the group."""

    READY = auto()  # waiting, or scheduled if its due time is still to come
    IN_FLIGHT = auto()
    SUSPECT = auto()  # its lease ended; it may have been running
    HELD = auto()  # given up with the DLQ off


@dataclass(frozen=True, slots=True)
class Lease:
    """One handing-over: who has it, since when, until when. The token fences it against every other one."""

    token: int
    owner: str
    since: datetime
    until: datetime
    alone: bool = False


@dataclass(slots=True)
class Entry:
    """One message of one group, and all that a broker keeps about it.

    A lease that was not given back stays here: it is the mark by which a crash is counted.
    """

    message: Message
    due_at: datetime
    place: Place = Place.READY
    lease: Lease | None = None
    failures: int = 0
    crashes: int = 0
    generation: int = 0
    letter_id: str | None = None
    attempts_allowed: int | None = None
    first_attempt_at: datetime | None = None
    trail: bytes = b""

    def wait(self, due_at: datetime, *, place: Place = Place.READY) -> None:
        """Take it out of a worker's hands; the lease ended in good order."""
        self.place, self.lease, self.due_at = place, None, due_at

    def begin_again(self, now: datetime) -> None:
        """Let a held message run with all its attempts before it; the trail remembers the earlier ones."""
        self.failures, self.crashes, self.first_attempt_at = 0, 0, None
        self.wait(now)

    def fail(self, attempt: Attempt | None, *, trail: bytes) -> None:
        """Count a failed attempt."""
        self.failures += 1
        self.trail = trail or self.trail
        if attempt is not None and self.first_attempt_at is None:
            self.first_attempt_at = attempt.started_at

    def count_crash(self, obituary: Obituary | None) -> None:
        """Count a crash if the last lease was of a run alone and ended with its worker."""
        lease = self.lease
        if lease is None or not lease.alone:
            return
        known = obituary is not None and obituary.owner == lease.owner
        attempt = Attempt(
            number=self.failures + self.crashes + 1,
            started_at=lease.since,
            ended_at=lease.until,
            error_type="WorkerCrash",
            error_message=obituary.text if obituary and known else "its worker died while it ran alone",
            crash=True,
            node=lease.owner,
            generation=self.generation,
        )
        self.crashes += 1
        self.trail = dump_trail(extend_trail(load_trail(self.trail), attempt))
        self.first_attempt_at = self.first_attempt_at or lease.since

    def _waited(self) -> bool:
        published_at = self.message.published_at
        return not (self.lease and self.lease.alone) and (published_at is None or self.due_at > published_at)

    def delivery(self, group: str) -> Delivery:
        """What the worker gets."""
        assert self.lease is not None  # noqa: S101 - only what was started is delivered
        return Delivery(
            message=self.message,
            group=group,
            received_at=self.lease.since,
            failures=self.failures,
            crashes=self.crashes,
            generation=self.generation,
            letter_id=self.letter_id,
            attempts_allowed=self.attempts_allowed,
            first_attempt_at=self.first_attempt_at,
            trail=self.trail,
            alone=self.lease.alone,
            token=self.lease.token,
            due_at=self.due_at if self._waited() else None,
        )


@dataclass(slots=True)
class Group:
    """The messages of one group, and who works on them."""

    entries: dict[str, Entry] = field(default_factory=dict)
    in_flight: dict[int, Entry] = field(default_factory=dict)  # by token
    answers: dict[int, Settled] = field(default_factory=dict)  # by token
    workers: dict[str, Alive] = field(default_factory=dict)
    listeners: int = 0  # open subscriptions
    paused: str | None = None

    def add(self, entry: Entry) -> None:
        """A new message for this group."""
        self.entries[entry.message.id] = entry

    def ready(self, now: datetime) -> Iterable[Entry]:
        """What can be fetched now, oldest first."""
        if self.paused is None:
            yield from (entry for entry in self.at(Place.READY) if entry.due_at <= now)

    def at(self, place: Place) -> Iterable[Entry]:
        """The entries in one place."""
        return (entry for entry in self.entries.values() if entry.place is place)

    def next_due_at(self, now: datetime) -> datetime | None:
        """The earliest due time still to come."""
        return min((entry.due_at for entry in self.at(Place.READY) if entry.due_at > now), default=None)

    def hand_out(self, entry: Entry, lease: Lease) -> None:
        """Put one message into the hands of a worker."""
        entry.place, entry.lease = Place.IN_FLIGHT, lease
        self.in_flight[lease.token] = entry

    def expire(self, now: datetime) -> None:
        """Make suspects of everything whose lease has ended."""
        for token, entry in list(self.in_flight.items()):
            if entry.lease is not None and entry.lease.until <= now:
                entry.place = Place.SUSPECT
                del self.in_flight[token]

    def extend(self, token: int, *, until: datetime) -> bool:
        """Renew one lease; False if it is lost."""
        entry = self.in_flight.get(token)
        if entry is None or entry.lease is None:
            return False
        entry.lease = replace(entry.lease, until=until)
        return True

    def release(self, token: int, *, now: datetime) -> None:
        """Take one message back unspent. A suspect stays one: nothing has cleared it."""
        entry = self.in_flight.pop(token, None)
        if entry is not None and entry.lease is not None:
            entry.wait(now, place=Place.SUSPECT if entry.lease.alone else Place.READY)

    def remove(self, entry: Entry) -> None:
        """Let one message leave the group, whoever holds it."""
        self.entries.pop(entry.message.id, None)
        if entry.lease is not None:
            self.in_flight.pop(entry.lease.token, None)

    def remember(self, token: int, answer: Settled) -> None:
        """Keep the answer for the case that the settlement is sent again."""
        self.answers[token] = answer
        if len(self.answers) > REMEMBERED:
            del self.answers[next(iter(self.answers))]
