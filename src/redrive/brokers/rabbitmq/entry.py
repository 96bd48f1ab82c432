"""A message of a group, with all that is known of its attempts, and how that travels in its headers."""

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import uuid4

from aiormq.abc import DeliveredMessage

from redrive.brokers.rabbitmq.parcel import STATE, TRAIL, Parcel, Read, Table, from_micros, read, to_micros, write
from redrive.core.attempt import Attempt, append_attempt
from redrive.core.delivery import Delivery
from redrive.core.message import Message, without_reserved
from redrive.core.redrive import SendBack


class Mark(NamedTuple):
    """Who ran a suspect alone when its lease ended."""

    owner: str
    since: datetime
    until: datetime


@dataclass(slots=True, eq=False)
class Entry:
    """One message of one group. With `until`, it is held once more on its way: no hold queue keeps for so long."""

    message: Message
    failures: int = 0
    crashes: int = 0
    generation: int = 0
    letter_id: str | None = None
    attempts_allowed: int | None = None
    first_attempt_at: datetime | None = None
    trail: bytes = b""
    due_at: datetime | None = None
    until: datetime | None = None
    mark: Mark | None = None
    turn: int = 0

    @property
    def key(self) -> str:
        """A name for this copy: every attempt has another, also one that counts from the beginning again."""
        return f"{self.message.id}/{self.generation}.{self.turn}.{self.failures}.{self.crashes}"

    def failed(self, attempt: Attempt | None, *, trail: bytes, due_at: datetime) -> "Entry":
        """The same after one more failed attempt."""
        began = self.first_attempt_at or (attempt.started_at if attempt else None)
        return replace(
            self,
            failures=self.failures + 1,
            trail=trail or self.trail,
            first_attempt_at=began,
            due_at=due_at,
            until=None,
            mark=None,
        )

    def crashed(self, mark: Mark, *, why: str) -> "Entry":
        """The same after its worker died while it ran alone."""
        attempt = Attempt(
            number=self.failures + self.crashes + 1,
            started_at=mark.since,
            ended_at=max(mark.since, mark.until),
            error_type="WorkerCrash",
            error_message=why,
            crash=True,
            node=mark.owner,
            generation=self.generation,
        )
        return replace(
            self,
            crashes=self.crashes + 1,
            trail=append_attempt(self.trail, attempt),
            first_attempt_at=self.first_attempt_at or mark.since,
            mark=None,
        )

    def begun_again(self) -> "Entry":
        """The same with all its attempts before it; the trail remembers the earlier ones."""
        return replace(
            self,
            failures=0,
            crashes=0,
            first_attempt_at=None,
            due_at=None,
            until=None,
            mark=None,
            turn=self.turn + 1,
        )

    def delivery(self, group: str, *, now: datetime, token: object, alone: bool = False) -> Delivery:
        """What a worker gets."""
        return Delivery(
            self.message,
            group,
            now,
            self.failures,
            self.crashes,
            self.generation,
            self.letter_id,
            self.attempts_allowed,
            self.first_attempt_at,
            self.trail,
            alone,
            None,
            token,
            None if alone else self.due_at,
        )

    def parcel(self) -> Parcel:
        """The message as it is sent on, within its group."""
        state: dict[str, Any] = {
            "origin": self.message.origin,
            "due": _micros(self.due_at),
            "until": _micros(self.until),
            "first": _micros(self.first_attempt_at),
            "failures": self.failures,
            "crashes": self.crashes,
            "generation": self.generation,
            "letter": self.letter_id,
            "attempts": self.attempts_allowed,
            "turn": self.turn,
            "alone": self.mark and [self.mark.owner, to_micros(self.mark.since), to_micros(self.mark.until)],
        }
        told = json.dumps({name: value for name, value in state.items() if value}, separators=(",", ":"))
        ours: Table = {STATE: told}
        if self.trail:
            ours[TRAIL] = bytearray(self.trail)
        return write(self.message, ours=ours)


def plain_parcel(message: Message, *, now: datetime, due_at: datetime | None = None) -> Parcel:
    """A first copy, for a queue. What our own headers say in it was not written by us."""
    first = message._replace(headers=without_reserved(message.headers), published_at=now, origin="")
    return Entry(first, due_at=due_at).parcel() if due_at is not None else write(first)


def entry_of(found: Read) -> Entry:
    """What `Entry.parcel` wrote; whatever else was published has no past."""
    message, ours, _ = found
    text = ours.get(STATE)
    if text is None:
        return Entry(message)
    state: dict[str, Any] = json.loads(text)
    mark = state.get("alone")
    return Entry(
        message._replace(origin=state.get("origin", "")),
        failures=state.get("failures", 0),
        crashes=state.get("crashes", 0),
        generation=state.get("generation", 0),
        letter_id=state.get("letter"),
        attempts_allowed=state.get("attempts"),
        first_attempt_at=_instant(state.get("first")),
        trail=bytes(ours.get(TRAIL, b"")),
        due_at=_instant(state.get("due")),
        until=_instant(state.get("until")),
        mark=Mark(mark[0], from_micros(mark[1]), from_micros(mark[2])) if mark else None,
        turn=state.get("turn", 0),
    )


def entry_in(delivered: DeliveredMessage, *, queue: str, now: datetime) -> Entry:
    """The message that was delivered."""
    return entry_of(read(delivered, queue=queue, now=now))


def sent_back(item: SendBack, *, message_id: str, now: datetime) -> Entry:
    """A letter on its way back to its group."""
    message = Message(message_id, item.queue, item.body, without_reserved(item.headers), item.key, now)
    if not item.marked:
        return Entry(message)
    return Entry(
        message._replace(origin=item.origin),
        generation=item.generation,
        letter_id=item.letter_id,
        attempts_allowed=item.attempts_allowed,
    )


def new_id() -> str:
    """An id for a message."""
    return uuid4().hex


def _micros(at: datetime | None) -> int | None:
    return None if at is None else to_micros(at)


def _instant(number: Any) -> datetime | None:
    return from_micros(number) if isinstance(number, int) else None
