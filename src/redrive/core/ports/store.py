"""The ports of the way back: where letters live for people, the record of redrives, the audit.

A store method takes all it needs and has committed when it returns. Every change that a person makes names its `Act`,
and is audited in the same transaction. One object implements these ports, the book of tokens
and that of memos, over one database.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

from redrive.core.audit import Act, AuditRecord
from redrive.core.letter import DeadLetter
from redrive.core.life import LetterState
from redrive.core.ports.memos import MemoBook
from redrive.core.ports.tokens import TokenBook
from redrive.core.query import Query
from redrive.core.redrive import Planned, Progress, Redrive, RedriveOutcome, RedriveState
from redrive.core.stored import (
    Claimed,
    Collected,
    Count,
    Dimension,
    Edit,
    IncidentChange,
    IncidentRow,
    LetterRow,
    Page,
    Recount,
    Selected,
    Stats,
    StoredLetter,
)


class LetterStore(Protocol):
    """Where letters live for people."""

    async def collect(
        self, letters: Sequence[DeadLetter], outcomes: Sequence[RedriveOutcome] = (), *, act: Act | None = None
    ) -> Collected:
        """Take in letters and outcomes: all or none, once per (letter_id, generation), in any order (`core.life`).

        Tallies, incidents and redrive items move in the same transaction. What was purged is taken in again only if it
        died in a later generation. A collector takes in what workers say, and names no act. With one, the record of the
        operation counts the letters that were brought and says what became of them; those that were known already and
        stay as they are have none of their own. Raises `StoreUnavailable`, or `StoreError` if a letter cannot be kept.
        """
        ...

    async def get(self, letter_id: str) -> StoredLetter:
        """One letter whole. Raises `LetterNotFound`."""
        ...

    async def get_many(self, letter_ids: Sequence[str]) -> Sequence[StoredLetter]:
        """Letters whole, in the order asked, each once; those that are not there are left out."""
        ...

    async def find(
        self, query: Query, *, limit: int = 50, after: str | None = None, patience: timedelta | None = None
    ) -> Page[LetterRow]:
        """Letters that match, newest first by arrival.

        Takes a bounded time, about `patience` if that is given: a page may be short, and even empty, while `after` says
        that there is more to look through. Raises `ValueError` for a cursor that is none.
        """
        ...

    async def read(self, query: Query, *, limit: int, after: str | None = None, most: int) -> Page[StoredLetter]:
        """The same letters whole, until those of a page have `most` bytes together (`StoredLetter.size`), about.

        A page of letters that are large ends early, with one at least: no more of them are in memory.
        """
        ...

    async def select(self, query: Query, *, limit: int, upto: str | None = None) -> Sequence[Selected]:
        """The first `limit` letters that match, oldest first: the set that a redrive freezes.

        With a cursor of `news`, those that came or reopened behind it are left out. Raises `ValueError` for a cursor
        that is none.
        """
        ...

    async def select_named(self, letter_ids: Sequence[str]) -> Sequence[Selected]:
        """These letters in whatever state, in the order asked, each once; `sendable` is known of each.

        Raises `LetterNotFound` for the first that is not there.
        """
        ...

    async def count(self, query: Query, *, cap: int = 10_000, patience: timedelta | None = None) -> Count:
        """How many match; exact where a tally has it, else counted up to `cap` within a bounded time, as by `find`."""
        ...

    async def stats(self, queue: str | None = None, *, states: Sequence[LetterState] = ()) -> Stats:
        """Exact counts over the letters of a queue, or of all, that are in one of these states, or in whichever."""
        ...

    async def trends(
        self, *, since: datetime, until: datetime | None = None, queue: str | None = None, by: Dimension
    ) -> Sequence[tuple[datetime, Mapping[str, int]]]:
        """Deaths per hour, by one dimension, oldest first: hours that begin at `since` or later, and before `until`.

        Hours without any are left out. A relapse is a death too. Each counts once in every dimension, in the hour of
        its failure, whenever and however often it was told; one without an error code under an empty name.
        """
        ...

    async def news(self, *, after: str | None, limit: int = 100) -> Page[LetterRow]:
        """Letters that came or reopened behind a cursor, in that order; how to go on is always said.

        A letter reopens when it becomes open or parked again, and when it is told what it died of anew; what people
        decide is no news. One that did so twice since is there once, as it is now. Without a cursor nothing is news
        yet: a page without rows, and the cursor of the present. A cursor never passes what is still being committed;
        one from beyond the present is taken for it. Raises `ValueError` for a cursor that is none.
        """
        ...

    async def incidents(
        self,
        *,
        state: str | None = "open",
        limit: int = 50,
        after: str | None = None,
        since: datetime | None = None,
    ) -> Page[IncidentRow]:
        """Incidents in a state, or all, the latest first; without their hours. If given, only those begun `since`."""
        ...

    async def incident(self, incident_id: str) -> IncidentRow:
        """One incident with its hours. Raises `LetterNotFound`."""
        ...

    async def incident_hours(
        self, incident_ids: Sequence[str], *, since: datetime
    ) -> Mapping[str, Sequence[tuple[datetime, int]]]:
        """The hours of several incidents that begin at `since` or later, oldest first; none of those without any."""
        ...

    async def change_incident(self, incident_id: str, change: IncidentChange, *, act: Act) -> IncidentRow:
        """Note, assign, mute or resolve. Raises `LetterNotFound`."""
        ...

    async def discard(self, letters: Mapping[str, int], *, act: Act) -> Sequence[str]:
        """Discard letters that are still of the version given; return the ids of those that were."""
        ...

    async def note(self, letter_id: str, text: str, *, act: Act) -> None:
        """Put a note on a letter. Raises `LetterNotFound`."""
        ...

    async def edit(self, letter_id: str, edit: Edit, *, version: int, act: Act) -> int:
        """Keep an edited form beside the original, for the next redrive; return its number.

        `version` is that of the letter as the editor read it. It goes up, so that a selection previewed before does not
        send the letter, and of two edits of one version only the first is kept. Raises `LetterNotFound`, or
        `StateConflict` if the letter is not open or parked, or of another version.
        """
        ...

    async def purge(self, query: Query, *, before: datetime, limit: int, act: Act) -> int:
        """Remove up to `limit` matching letters that failed before then and are not out; leave tombstones."""
        ...

    async def tend(self) -> bool:
        """Do a bounded piece of the work that can wait, as indexing text for search; True if there is more of it."""
        ...

    async def aclose(self) -> None:
        """Close. Idempotent."""
        ...


class RedriveStore(Protocol):
    """The durable record of redrives: every step can be taken again after a crash."""

    async def create(
        self, redrive: Redrive, items: Sequence[Planned], *, act: Act, owner: str = "", until: datetime | None = None
    ) -> None:
        """Freeze a selection. A letter that is out in another redrive when its turn comes is skipped.

        With an owner it is taken by them until then, as by `take`, before any other redriver can see it.
        """
        ...

    async def redrive(self, redrive_id: str) -> Redrive:
        """One redrive. Raises `LetterNotFound`."""
        ...

    async def redrives(self, *, limit: int = 50, after: str | None = None) -> Page[Redrive]:
        """Redrives, the latest first."""
        ...

    async def unfinished(self) -> Sequence[Redrive]:
        """Redrives that are running, oldest first: what a redriver takes up after a restart."""
        ...

    async def claim(self, redrive_id: str, *, step: int, limit: int) -> Sequence[Claimed]:
        """Spend the next generation of up to `limit` letters of a step that are still as previewed; skip the others.

        First gives again what was claimed and never recorded as sent, with the same generation. Nothing new is claimed
        unless the redrive is running. A letter that keeps no payload and has no edit is skipped.
        """
        ...

    async def take(self, redrive_id: str, *, owner: str, now: datetime, until: datetime) -> bool:
        """Be the one redriver of this redrive until then; False if another one is.

        Taken again by the same owner it is renewed, or given up with an `until` that has passed. Not audited.
        """
        ...

    async def sent(self, redrive_id: str, messages: Mapping[str, str], *, at: datetime) -> None:
        """Record the message id of each letter published; one that was heard of already stays what it is."""
        ...

    async def progress(self, redrive_id: str) -> Progress:
        """Items by status and step."""
        ...

    async def expire(self, redrive_id: str, *, before: datetime, quiet: bool) -> int:
        """Items sent before then and not heard of become unconfirmed, or quiet; return how many.

        Those of which only a failure was reported, and no letter came, have failed.
        """
        ...

    async def mark(
        self, redrive_id: str, state: RedriveState, *, why: str, act: Act, accepted: int | None = None
    ) -> Redrive:
        """Pause, resume, stop, cancel or end a redrive. Idempotent.

        At the end what was never claimed is untouched, and what is out is unconfirmed (`core.redrive.left`).
        `accepted`, if given, is kept in the redrive. Raises `StateConflict` for one that has ended in another way.
        """
        ...


class AuditLog(Protocol):
    """What was done, by whom; append-only.

    An operation that takes several calls with one act has one record for the operation, written by the first. The
    letters of a redrive have theirs when they are claimed.
    """

    async def record(self, act: Act, *, letter_ids: Sequence[str] = ()) -> None:
        """Put an act on record that changes nothing in the store: a look at what is masked, a queue that is paused.

        Each letter named has a record of its own, with the hash of what would be sent back as it is, empty if the
        letter is not there.
        """
        ...

    async def records(
        self, *, limit: int = 50, after: str | None = None, letter_id: str | None = None
    ) -> Page[AuditRecord]:
        """Records, the latest first."""
        ...

    async def verify(self) -> AuditRecord | None:
        """The first record that does not follow from those before it; None if the chain holds."""
        ...


class Store(LetterStore, RedriveStore, AuditLog, TokenBook, MemoBook, Protocol):
    """All five, over one database."""


@runtime_checkable
class Recountable(Protocol):
    """A store in which people may remove letters by hand, behind the back of what is counted."""

    async def recount(self) -> Recount:
        """Count every letter again, and mend the numbers that are kept beside them. Idempotent."""
        ...
