"""Letters: look at them, note, discard, purge, compare, hear what became of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from redrive.core.errors import LetterNotFound, StateConflict
from redrive.core.letter import payload_hash
from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.core.stored import Count, LetterRow, Page, Stats, StoredLetter
from redrive.triage.desk import Desk
from redrive.triage.selection import Selection, in_words

UNSETTLED = (LetterState.OPEN, LetterState.PARKED)
"""The states of letters that somebody has to do something about."""

CHUNK = 1000  # letters per transaction: the write lock is never held for long
ENOUGH = 2 * 1024 * 1024  # bytes of letters to have in memory at once


async def find(
    desk: Desk, query: Query, *, limit: int = 50, after: str | None = None, patience: timedelta | None = None
) -> Page[LetterRow]:
    """A page of letters, newest first by arrival; a short one where looking took all of the patience."""
    return await desk.store.find(query, limit=limit, after=after, patience=patience)


async def count(desk: Desk, query: Query, *, patience: timedelta | None = None) -> Count:
    """How many letters match; at least so many where counting took all of the patience."""
    return await desk.store.count(query, patience=patience)


async def show(desk: Desk, letter_id: str) -> StoredLetter:
    """One letter whole. Raises `LetterNotFound`."""
    return await desk.store.get(letter_id)


async def read(desk: Desk, query: Query, *, limit: int, after: str | None = None) -> Page[StoredLetter]:
    """A page of letters whole; it ends early where they are so large that a few are `ENOUGH`."""
    return await desk.store.read(query, limit=limit, after=after, most=ENOUGH)


async def named(desk: Desk, name: str, *, queue: str | None = None) -> StoredLetter:
    """The letter with this id, or of the DLQ entry with this id, whatever its state; of this queue, if one is given.

    Raises `LetterNotFound`, and `StateConflict` for an entry's id that several letters have, naming their queues.
    """
    try:
        found = await desk.store.get(name)
    except LetterNotFound:
        found = await desk.store.get(await _of_entry(desk, name, queue=queue))
    if queue is not None and found.letter.queue != queue:
        raise LetterNotFound(f"no letter {name!r} of the queue {queue!r} is in the store")
    return found


async def _of_entry(desk: Desk, entry_id: str, *, queue: str | None) -> str:
    rows: list[LetterRow] = []
    after: str | None = None
    while entry_id and len(rows) < _NAMED:
        page = await desk.store.find(Query(dlq_entry_id=entry_id, queue=queue), limit=_NAMED, after=after)
        rows += page.rows
        after = page.after
        if after is None:
            break
    if len(rows) > 1:
        queues = ", ".join(dict.fromkeys(f"{row.queue} on {row.broker}" for row in rows))
        raise StateConflict(f"several letters have the DLQ entry id {entry_id!r}: say which queue is meant: {queues}")
    if not rows:
        raise LetterNotFound(f"no letter {entry_id!r} is in the store")
    return rows[0].letter_id


_NAMED = 20  # letters of one entry id that are looked at: enough to say between what to choose


async def stats(desk: Desk, queue: str | None = None, *, states: Sequence[LetterState] = ()) -> Stats:
    """Exact counts, over one queue or all, of letters in these states or in any."""
    return await desk.store.stats(queue, states=states)


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
    return await discard_seen(desk, selection.versions(), words=selection.words, why=why, advance=advance)


async def discard_seen(
    desk: Desk,
    seen: Mapping[str, int],
    *,
    words: str = "",
    why: str = "",
    advance: Callable[[int], None] = lambda _: None,
) -> Discarded:
    """As `discard`, for letters that were looked at elsewhere: each by its id, in the version that was seen."""
    versions = [*seen.items()]
    detail = {"why": why} if why else {}
    act = desk.act("letters.discard", selection=words, count=len(versions), **detail)
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


async def discard_one(desk: Desk, stored: StoredLetter, *, why: str = "") -> None:
    """Decide that a letter is not needed, as it was looked at; one that is discarded already stays so.

    Raises `StateConflict` if it is not open or parked, or has changed.
    """
    letter_id, life = stored.letter.letter_id, stored.life
    if life.state is LetterState.DISCARDED:
        return
    if life.state not in UNSETTLED:
        raise StateConflict(f"letter {letter_id} is {life.state}: only one that is open or parked can be discarded")
    done = await discard_seen(desk, {letter_id: life.version}, words=f"letter={letter_id}", why=why)
    if not done.discarded:
        raise StateConflict(f"letter {letter_id} has changed since it was looked at")


async def purge_preview(desk: Desk, query: Query, *, older_than: timedelta) -> Purge:
    """What `purge` would remove: letters that match and failed longer ago; those that are out are kept all the same."""
    before = desk.clock.now() - older_than
    bounded = _before(query, before)
    return Purge(await desk.store.count(bounded), before, in_words(bounded))


async def purge(
    desk: Desk, query: Query, *, older_than: timedelta | None = None, advance: Callable[[int], None] = lambda _: None
) -> Purge:
    """Remove letters for good, in chunks; tombstones stay, so that a late copy does not bring them back.

    Of any age, unless one is given; those that are out are kept. Each chunk is an operation of its own in the audit,
    with its count: how many there will be is not known before the end. `advance` hears of every chunk how many it was.
    """
    # Clocks differ: a letter may say that it fails only tomorrow, and is meant all the same.
    before = _EVER if older_than is None else desk.clock.now() - older_than
    words = in_words(query if older_than is None else _before(query, before))
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
    edits = [payload_hash(edit.body) for edit in stored.edits]
    return compare(content, original=stored.letter.payload_sha256, edits=edits)


def compare(content: bytes, *, original: str, edits: Sequence[str]) -> Comparison:
    """The same, with the hashes of a letter that is not at hand."""
    hashed = payload_hash(content)
    same = hashed == original
    edit = None if same or hashed not in edits else edits.index(hashed) + 1
    return Comparison(same, original, hashed, edit)


_EVER = datetime.max.replace(tzinfo=UTC)


def _before(query: Query, before: datetime) -> Query:
    return replace(query, to_at=before if query.to_at is None else min(query.to_at, before))
