"""Suspects, in the group's book: taken one at a time, each marked before it runs, whichever process takes it."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import uuid4

from redrive.brokers.kafka.book import Book, Change, Row, Rows
from redrive.brokers.kafka.clerk import HELD, SUSPECT, Clerk, Step, row_of
from redrive.brokers.kafka.entry import Entry, Lease, entry_of, key_of
from redrive.brokers.kafka.record import from_micros, state_in, to_micros
from redrive.brokers.kafka.transactions import Refused
from redrive.brokers.process import identity, is_dead
from redrive.core.outcome import DONE, LOST, Settled, Settlement, SettleStatus
from redrive.core.place import DeadLetterPlace
from redrive.core.ports import Clock, Obituary, Options

PAUSED = "paused"


class Mark(NamedTuple):
    """Who runs a suspect alone, and until when it is theirs if they are not heard of."""

    token: str
    lease: Lease
    process: str

    def dump(self) -> dict[str, Any]:
        owner, since, until = self.lease
        return {
            "token": self.token,
            "owner": owner,
            "since": to_micros(since),
            "until": to_micros(until),
            "process": self.process,
        }

    def is_over(self, now: datetime, obituary: Obituary | None) -> bool:
        """Whether its worker has died."""
        told = obituary is not None and obituary.owner == self.lease.owner
        return told or self.lease.until <= now or is_dead(self.process)


class Suspect(NamedTuple):
    """A row of the book."""

    key: str
    entry: Entry
    mark: Mark | None


class Suspects:
    """The suspects of one group. Every call blocks; safe for many threads."""

    def __init__(self, book: Book, clerk: Clerk, *, queue: str, clock: Clock) -> None:
        self._book = book
        self._clerk = clerk
        self._queue = queue
        self._clock = clock

    def waiting(self, obituary: Obituary | None = None) -> int:
        """How many wait, as the book was at the last look."""
        now = self._clock.now()
        return sum(suspect.mark is None or suspect.mark.is_over(now, obituary) for suspect in self.all())

    def all(self) -> Iterator[Suspect]:
        return suspects_in(self._book.rows, queue=self._queue, now=self._clock.now())

    def take(self, options: Options) -> Entry | None:
        """Mark one, if one waits and the group is not paused; return it."""
        token, chosen = uuid4().hex, list[Entry]()

        def decide(rows: Rows) -> Change | None:
            now = self._clock.now()
            chosen.clear()
            if PAUSED in rows:
                return None
            for key, entry, mark in suspects_in(rows, queue=self._queue, now=now):
                if mark is not None and mark.token == token:
                    chosen.append(entry)
                    return None
                if mark is None or mark.is_over(now, options.obituary):
                    taken = entry if mark is None else _crashed(entry, mark, options.obituary)
                    lease = Lease(options.owner, now, now + options.lease)
                    taken.token = token
                    chosen.append(taken)
                    return Change({key: row_of(taken, alone=Mark(token, lease, identity()).dump())})
            return None

        self._book.change(decide)
        if not chosen:
            return None
        chosen[0].token = token
        return chosen[0]

    def extend(self, tokens: Sequence[str], *, until: datetime) -> set[str]:
        """Renew the leases of those that are still ours; return those that are lost."""
        lost = set(tokens)

        def decide(rows: Rows) -> Change | None:
            ours = self._marked(rows, tokens)
            lost.difference_update(token for token, _ in ours)
            renewed = {
                suspect.key: row_of(
                    suspect.entry, alone=suspect.mark._replace(lease=suspect.mark.lease._replace(until=until)).dump()
                )
                for _, suspect in ours
                if suspect.mark is not None and suspect.mark.lease.until < until
            }
            return Change(renewed) if renewed else None

        self._book.change(decide)
        return lost

    def release(self, tokens: Sequence[str]) -> None:
        """Hand back: they stay suspects, and have not crashed."""

        def decide(rows: Rows) -> Change | None:
            ours = self._marked(rows, tokens)
            return Change({suspect.key: row_of(suspect.entry) for _, suspect in ours}) if ours else None

        self._book.change(decide)

    def settle(self, item: Settlement, place: DeadLetterPlace) -> Settled:
        """Carry out one outcome, if the suspect is still ours."""
        try:
            return self._settle(item, lambda entry: self._clerk.step(item, entry, place))
        except Refused:
            try:
                return self._settle(item, lambda entry: self._clerk.step(item, entry, place, smaller=True))
            except Refused as error:
                return Settled(SettleStatus.REFUSED, str(error))

    def _settle(self, item: Settlement, plan: Callable[[Entry], Step]) -> Settled:
        tried: list[Step] = []

        def decide(rows: Rows) -> Change | None:
            ours = self._marked(rows, [str(item.delivery.token)])
            if not ours:
                return None
            (_, suspect), *_ = ours
            tried.append(plan(suspect.entry))
            return Change({suspect.key: None, **tried[-1].rows}, tried[-1].records)

        self._book.change(decide)
        return DONE._replace(due_at=tried[-1].due_at) if tried else LOST

    def _marked(self, rows: Rows, tokens: Sequence[str]) -> list[tuple[str, Suspect]]:
        found = suspects_in(rows, queue=self._queue, now=self._clock.now())
        return [(each.mark.token, each) for each in found if each.mark is not None and each.mark.token in tokens]


def suspects_in(rows: Rows, *, queue: str, now: datetime) -> Iterator[Suspect]:
    """The suspects in a book, the oldest first."""
    for key, row in rows.items():
        if key.startswith(SUSPECT):
            yield Suspect(key, entry_in_book(row, queue=queue, now=now), _mark_in(row))


def held_in(rows: Rows, *, queue: str, now: datetime) -> Iterator[tuple[str, Entry]]:
    """What a group holds, the oldest first."""
    for key, row in rows.items():
        if key.startswith(HELD):
            yield key, entry_in_book(row, queue=queue, now=now)


def entry_in_book(row: Row, *, queue: str, now: datetime) -> Entry:
    """The message that `row_of` wrote."""
    key = key_of(state_in(row.headers).get("key"))
    return entry_of(row.headers, row.value, key, queue=queue, id="", at=now)


def paused_in(rows: Rows) -> str | None:
    """Why a group is paused, if it is."""
    row = rows.get(PAUSED)
    return None if row is None else str(json.loads(row.value))


def _mark_in(row: Row) -> Mark | None:
    told = state_in(row.headers).get("alone")
    if not told:
        return None
    lease = Lease(told["owner"], from_micros(told["since"]), from_micros(told["until"]))
    return Mark(told["token"], lease, told["process"])


def _crashed(entry: Entry, mark: Mark, obituary: Obituary | None) -> Entry:
    known = obituary is not None and obituary.owner == mark.lease.owner
    why = obituary.text if obituary is not None and known else "its worker died while it ran alone"
    return entry.crashed(mark.lease, why=why)
