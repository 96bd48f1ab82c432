"""Finding letters by number, piece by piece, so that no question holds anybody up for long.

A question that an index answers is asked at once. Any other looks through windows of numbers, each larger than the one
before, until it has what it wants or has looked for long enough; a cursor says where to go on.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, false, func, select, union_all

from redrive.core.life import LetterState
from redrive.core.ports.store import Count, LetterRow, Page
from redrive.core.query import Query
from redrive.stores.cursor import number_of
from redrive.stores.sql import texts
from redrive.stores.sql.chunks import chunks
from redrive.stores.sql.rows import LISTED, to_row
from redrive.stores.sql.sqlite import matching_text
from redrive.stores.sql.tables import letter, tally_state

PATIENCE = 0.25  # seconds
FIRST_WINDOW = 20_000
LARGEST_WINDOW = 200_000
_LEADING = ("fingerprint", "queue", "error_type")  # each has an index with state and number
_TALLIED = {"queue", "error_type", "reason", "state"}


@dataclass(frozen=True, slots=True)
class Search:
    """Which letters are wanted, of which states, in which order of arrival."""

    query: Query
    states: Sequence[LetterState] = ()
    newest_first: bool = True

    def asked(self) -> set[str]:
        """What the query is about."""
        others = [name for name in ("state", "from_at", "to_at", "text") if getattr(self.query, name) is not None]
        return {*self.query.equal_to(), *others}

    def is_indexed(self) -> bool:
        """Whether an index leads to exactly these letters."""
        asked = self.asked() - {"state"}
        return not asked or (len(asked) == 1 and not asked.isdisjoint(_LEADING)) or self.asked() == {"user_id"}

    def wanted_states(self) -> Sequence[LetterState]:
        """The states that may be found."""
        states = self.states or [*LetterState]
        return states if self.query.state is None else [state for state in states if state is self.query.state]


def find(connection: Connection, query: Query, *, limit: int, after: str | None) -> Page[LetterRow]:
    """A page, newest first."""
    below = number_of(after)
    give_up_at = time.monotonic() + PATIENCE
    search = Search(query)
    found: list[int] = []
    for above, end in _windows(connection, search, below=below):
        found.extend(_numbers(connection, search, above=above, below=end, limit=limit + 1 - len(found)))
        if len(found) > limit:
            return Page(rows_of(connection, found[:limit]), str(found[limit - 1]))
        if above > 0 and time.monotonic() > give_up_at:
            return Page(rows_of(connection, found), str(above + 1))
    return Page(rows_of(connection, found))


def select_all(connection: Connection, search: Search, *, limit: int) -> list[int]:
    """The numbers of the first `limit` letters, however long it takes."""
    found: list[int] = []
    for above, below in _windows(connection, search):
        found.extend(_numbers(connection, search, above=above, below=below, limit=limit - len(found)))
        if len(found) >= limit:
            break
    return found


def select_rows(connection: Connection, query: Query, *, limit: int) -> list[LetterRow]:
    """The first `limit` letters, oldest first."""
    return rows_of(connection, select_all(connection, Search(query, newest_first=False), limit=limit))


def count(connection: Connection, query: Query, *, cap: int) -> Count:
    """How many there are: from the tally, or counted up to the cap and for a bounded time."""
    search = Search(query)
    if search.asked() <= _TALLIED:
        return Count(_tallied(connection, query))
    give_up_at = time.monotonic() + PATIENCE
    number = 0
    for above, below in _windows(connection, search):
        some = _statement(connection, search, above=above, below=below, limit=cap + 1 - number).subquery()
        number += connection.execute(select(func.count()).select_from(some)).scalar_one()
        if number > cap:
            return Count(cap, capped=True)
        if above > 0 and time.monotonic() > give_up_at:
            return Count(number, capped=True)
    return Count(number)


def rows_of(connection: Connection, seqs: Sequence[int]) -> list[LetterRow]:
    """The letters with these numbers, in their order."""
    found = {}
    for some in chunks(seqs):
        for row in connection.execute(select(*LISTED).where(letter.c.seq.in_(some))).mappings():
            found[row["seq"]] = to_row(row)
    return [found[seq] for seq in seqs]


def _tallied(connection: Connection, query: Query) -> int:
    state = {} if query.state is None else {"state": query.state.value}
    equal = [tally_state.c[name] == value for name, value in (query.equal_to() | state).items()]
    return connection.execute(select(func.sum(tally_state.c.n)).where(*equal)).scalar() or 0


def _windows(connection: Connection, search: Search, *, below: int | None = None) -> Iterator[tuple[int, int]]:
    """Where to look, one after the other: behind the first number and before the second."""
    end = texts.last_number(connection) + 1
    end = end if below is None else min(below, end)
    if search.is_indexed():
        yield 0, end
        return
    start, size = 0, FIRST_WINDOW
    while start < end - 1:
        if search.newest_first:
            edge = max(end - 1 - size, 0)
            yield edge, end
            end = edge + 1
        else:
            edge = min(start + size, end - 1)
            yield start, edge + 1
            start = edge
        size = min(size * 2, LARGEST_WINDOW)


def _numbers(connection: Connection, search: Search, *, above: int, below: int, limit: int) -> list[int]:
    return [*connection.execute(_statement(connection, search, above=above, below=below, limit=limit)).scalars()]


def _statement(connection: Connection, search: Search, *, above: int, below: int, limit: int) -> Select[tuple[int]]:
    order = letter.c.seq.desc() if search.newest_first else letter.c.seq
    conditions = _conditions(connection, search.query, above=above, below=below)
    base = select(letter.c.seq).where(letter.c.seq > above, letter.c.seq < below, *conditions)
    states = search.wanted_states()
    if len(states) == 1 or search.asked().isdisjoint(_LEADING):
        if len(states) < len(LetterState):
            base = base.where(letter.c.state.in_([state.value for state in states]))
        return base.order_by(order).limit(limit)
    # An index has the state before the number: one look for each state, merged, instead of sorting all of them.
    each = [base.where(letter.c.state == state.value).order_by(order).limit(limit).subquery() for state in states]
    merged = union_all(*(select(one.c.seq) for one in each)).subquery()
    by = merged.c.seq.desc() if search.newest_first else merged.c.seq
    return select(merged.c.seq).order_by(by).limit(limit)


def _conditions(connection: Connection, query: Query, *, above: int, below: int) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = [letter.c[name] == value for name, value in query.equal_to().items()]
    if query.from_at is not None:
        found.append(letter.c.failed_at >= query.from_at)
    if query.to_at is not None:
        found.append(letter.c.failed_at < query.to_at)
    if query.text:
        found.append(_text_condition(connection, query.text.lower(), above=above, below=below))
    return found


def _text_condition(connection: Connection, wanted: str, *, above: int, below: int) -> ColumnElement[Any]:
    try:
        wanted.encode()
    except UnicodeEncodeError:
        return false()  # searchable text holds no lone surrogates
    if "\x00" in wanted:
        return false()  # nor U+0000
    indexed = texts.indexed_up_to(connection)
    return letter.c.seq.in_(matching_text(wanted, above=above, below=below, indexed=indexed))
