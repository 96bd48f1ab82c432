"""Letters: look at them, note, discard, purge, compare."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from redrive.core.letter import payload_hash
from redrive.core.life import LetterState
from redrive.core.ports.store import Count, LetterRow, Page, Stats, StoredLetter
from redrive.core.query import Query
from redrive.triage.desk import Desk
from redrive.triage.selection import Selection, in_words

CHUNK = 1000  # letters per transaction: the write lock is never held for long


async def find(desk: Desk, query: Query, *, limit: int = 50, after: str | None = None) -> Page[LetterRow]:
    """A page of letters, newest first by arrival."""
    return await desk.store.find(query, limit=limit, after=after)


async def count(desk: Desk, query: Query) -> Count:
    """How many letters match."""
    return await desk.store.count(query)


async def show(desk: Desk, letter_id: str) -> StoredLetter:
    """One letter whole. Raises `LetterNotFound`."""
    return await desk.store.get(letter_id)


async def stats(desk: Desk, queue: str | None = None) -> Stats:
    """Exact counts, over one queue or all."""
    return await desk.store.stats(queue)


async def note(desk: Desk, letter_id: str, text: str) -> None:
    """Put a note on a letter, instead of the one it has. Raises `LetterNotFound`."""
    await desk.store.note(letter_id, text, act=desk.act("letters.note", text=text))


class Discarded(NamedTuple):
    """How many letters were discarded, and how many had changed since they were looked at."""

    discarded: int
    changed: int


async def discard(
    desk: Desk, selection: Selection, *, why: str = "", advance: Callable[[int], None] = lambda _: None
) -> Discarded:
    """Decide that letters are not needed: one operation in the audit, in chunks. What has changed is left alone.

    `advance` hears of every chunk how many it was.
    """
    versions = [*selection.versions().items()]
    detail = {"why": why} if why else {}
    act = desk.act("letters.discard", selection=selection.words, count=len(versions), **detail)
    done = 0
    for start in range(0, len(versions), CHUNK):
        chunk = dict(versions[start : start + CHUNK])
        done += len(await desk.store.discard(chunk, act=act))
        advance(len(chunk))
    return Discarded(done, len(versions) - done)


@dataclass(frozen=True, slots=True)
class Purge:
    """What a purge would remove, or has removed. `words` is what it was asked for."""

    count: Count
    before: datetime
    words: str


async def purge_preview(desk: Desk, query: Query, *, older_than: timedelta) -> Purge:
    """What `purge` would remove: letters that match and failed longer ago; those that are out are kept all the same."""
    before = desk.clock.now() - older_than
    bounded = _before(query, before)
    return Purge(await desk.store.count(bounded), before, in_words(bounded, _states(query)))


async def purge(
    desk: Desk, query: Query, *, older_than: timedelta, advance: Callable[[int], None] = lambda _: None
) -> Purge:
    """Remove letters for good, in chunks; tombstones stay, so that a late copy does not bring them back.

    Each chunk is an operation of its own in the audit, with its count: how many there will be is not known before the
    end. `advance` hears of every chunk how many it was.
    """
    before = desk.clock.now() - older_than
    words = in_words(_before(query, before), _states(query))
    removed, number = 0, CHUNK
    while number == CHUNK:
        act = desk.act("letters.purge", selection=words)
        number = await desk.store.purge(query, before=before, limit=CHUNK, act=act)
        removed += number
        advance(number)
    return Purge(Count(removed), before, words)


class Comparison(NamedTuple):
    """Whether content is what a letter's message held."""

    same: bool
    letter_sha256: str
    content_sha256: str
    edit: int | None = None  # the number of the edit that it equals, if it is not the original


def verify(stored: StoredLetter, content: bytes) -> Comparison:
    """Compare content with a letter by their hashes: with the original, which also works where no copy was kept."""
    hashed = payload_hash(content)
    known = stored.letter.payload_sha256
    edit = next((place for place, one in enumerate(stored.edits, 1) if payload_hash(one.body) == hashed), None)
    return Comparison(hashed == known, known, hashed, None if hashed == known else edit)


def _before(query: Query, before: datetime) -> Query:
    return replace(query, to_at=before if query.to_at is None else min(query.to_at, before))


def _states(query: Query) -> Sequence[LetterState]:
    return (query.state,) if query.state else tuple(LetterState)
