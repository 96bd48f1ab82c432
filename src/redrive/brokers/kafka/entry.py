"""A message of a group, with all that is known of its attempts: in a partition, in the lane, or in the book."""

from base64 import b64decode, b64encode
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from redrive.brokers.kafka.record import (
    DUE,
    STATE,
    TRAIL,
    Read,
    Record,
    State,
    dump_state,
    from_micros,
    headers_of,
    instant_in,
    last_state_in,
    plain_message,
    state_in,
    to_micros,
)
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.window import Window
from redrive.core.attempt import Attempt, append_attempt
from redrive.core.delivery import Delivery
from redrive.core.message import Headers, Message, without_reserved
from redrive.core.redrive import SendBack

NOWHERE: Final = Share(("", 0), Window(0))
_new: Final = tuple.__new__  # at a third of the cost of calling the class


class Lease(NamedTuple):
    """One handing-over: who has it, since when, until when."""

    owner: str
    since: datetime
    until: datetime


@dataclass(eq=False)
class Entry:
    """One message of one group. `share` and `offset` say where its current copy is, if we have read it there.

    No slots: what has not happened to a message stands in the class only, and most messages are new.
    """

    message: Message
    share: Share = NOWHERE
    offset: int = 0
    failures: int = 0
    crashes: int = 0
    generation: int = 0
    letter_id: str | None = None
    attempts_allowed: int | None = None
    first_attempt_at: datetime | None = None
    trail: bytes = b""
    due_at: datetime | None = None
    token: str = ""  # of a suspect

    def failed(self, attempt: Attempt | None, *, trail: bytes, due_at: datetime) -> "Entry":
        """The same after one more failed attempt."""
        again = object.__new__(Entry)  # `replace` costs several times as much
        first_attempt_at = self.first_attempt_at or (attempt.started_at if attempt else None)
        vars(again).update(vars(self))
        vars(again).update(
            failures=self.failures + 1,
            trail=trail or self.trail,
            first_attempt_at=first_attempt_at,
            due_at=due_at,
        )
        return again

    def crashed(self, lease: Lease, *, why: str) -> "Entry":
        """The same after its worker died while it ran alone."""
        attempt = Attempt(
            number=self.failures + self.crashes + 1,
            started_at=lease.since,
            ended_at=max(lease.since, lease.until),
            error_type="WorkerCrash",
            error_message=why,
            crash=True,
            node=lease.owner,
            generation=self.generation,
        )
        trail = append_attempt(self.trail, attempt)
        return replace(
            self, crashes=self.crashes + 1, trail=trail, first_attempt_at=self.first_attempt_at or lease.since
        )

    def begun_again(self) -> "Entry":
        """The same with all its attempts before it; the trail remembers the earlier ones."""
        return replace(self, failures=0, crashes=0, first_attempt_at=None, due_at=None)

    def delivery(self, group: str, *, now: datetime, token: Any, alone: bool = False) -> Delivery:
        """What a worker gets."""
        told = (
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
        delivery: Delivery = _new(Delivery, told)
        return delivery

    def headers(self, *, group: str = "", **more: Any) -> Headers:
        """The message's own, and behind them what we know of it."""
        id, queue, _, headers, _, published_at, expires_at, origin = self.message  # noqa: A001 - its name everywhere
        due_at, first_attempt_at = self.due_at, self.first_attempt_at
        state = State(
            id,
            queue,
            origin,
            _micros(published_at),
            _micros(expires_at),
            _micros(due_at),
            _micros(first_attempt_at),
            self.failures,
            self.crashes,
            self.generation,
            self.letter_id,
            self.attempts_allowed,
            group,
        )
        if more:
            told = {name: value for name, value in more.items() if value}
            last = (STATE, dump_state({**msgspec.to_builtins(state), **told} if told else state))
        else:
            last = (STATE, dump_state(state))
        return (*headers, (TRAIL, self.trail), last) if self.trail else (*headers, last)

    def for_lane(self, lane: str, partition: int, *, group: str) -> Record:
        """The copy that waits in the lane of a group, whose name it bears for others who read there."""
        record: Record = _new(
            Record, (lane, self.message.body, self.headers(group=group), self.message.key, partition, 0)
        )
        return record


def entry_in_queue(read: Read) -> Entry:
    """A first copy."""
    return Entry(plain_message(read), due_at=instant_in(read.headers, DUE) if read.headers else None)


def entry_in_lane(read: Read, *, queue: str) -> Entry:
    """A copy that waited in the lane; what is not ours there is taken for a message without a past."""
    try:
        entry = entry_of(read.headers, read.value, read.key, queue=queue, id=read.id)
    except (ArithmeticError, TypeError, ValueError):
        entry = entry_of(without_reserved(read.headers), read.value, read.key, queue=queue, id=read.id)
    if entry.message.published_at is None:
        entry.message = entry.message._replace(published_at=read.at)
    return entry


def entry_as_written(found: Any, share: Share, offset: int, *, queue: str) -> Entry | None:
    """The same of a copy that is as we write it: its message's own headers, the trail if there is one, and the state.

    None for any other that the client has found there.
    """
    headers = found.headers()
    state = last_state_in(headers) if headers else None
    if state is None or not state.id or state.published is None:
        return None
    own, trail = headers[:-1], b""
    if own and own[-1][0] == TRAIL:
        trail = own.pop()[1] or b""
    try:
        told = (
            state.id,
            queue,
            found.value() or b"",
            without_reserved(headers_of(own)) if own else (),
            found.key(),
            from_micros(state.published),
            _instant(state.expires),
            state.origin,
        )
        return Entry(
            _new(Message, told),
            share,
            offset,
            state.failures,
            state.crashes,
            state.generation,
            state.letter,
            state.attempts,
            _instant(state.first),
            trail,
            _instant(state.due),
        )
    except ArithmeticError:  # beyond the calendar
        return None


def entry_of(
    headers: Headers,
    body: bytes,
    key: bytes | None,
    *,
    queue: str,
    id: str,  # noqa: A002 - what it is called everywhere
    at: datetime | None = None,
) -> Entry:
    """What `Entry.headers` wrote. `id` and `at` are those of this copy, for one that names no other."""
    told = state_in(headers).get
    message = Message(
        str(told("id") or id),
        queue,
        body,
        without_reserved(headers),
        key,
        _instant(told("published")) or at,
        _instant(told("expires")),
        str(told("origin", "")),
    )
    return Entry(
        message,
        failures=int(told("failures", 0)),
        crashes=int(told("crashes", 0)),
        generation=int(told("generation", 0)),
        letter_id=told("letter"),
        attempts_allowed=told("attempts"),
        first_attempt_at=_instant(told("first")),
        trail=next((value for name, value in headers if name == TRAIL), b""),
        due_at=_instant(told("due")),
    )


def sent_back(item: SendBack) -> Entry:
    """A letter on its way back to its group. Its id is the place it will have in the lane."""
    message = Message("", item.queue, item.body, without_reserved(item.headers), item.key)
    if not item.marked:
        return Entry(message)
    return Entry(
        message._replace(origin=item.origin),
        generation=item.generation,
        letter_id=item.letter_id,
        attempts_allowed=item.attempts_allowed,
    )


def key_text(key: bytes | None) -> str | None:
    """A key in a place that takes text only, and none that is empty."""
    return None if key is None else f"={b64encode(key).decode()}"


def key_of(text: str | None) -> bytes | None:
    """The key that `key_text` wrote."""
    return None if text is None else b64decode(text[1:])


def _micros(at: datetime | None) -> int | None:
    return None if at is None else to_micros(at)


def _instant(number: Any) -> datetime | None:
    return from_micros(number) if isinstance(number, int) else None
