"""Finding letters by number, piece by piece, so that no question holds anybody up for long.

A question that an index answers is asked at once, and so is one for a text or a time that few letters have. Any other
looks through windows of numbers, each larger than the one before, until it has what it wants or has looked for long
enough; a cursor says where to go on.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, Select, func, select, union_all

from redrive.core.life import LetterState
from redrive.core.query import Query, is_searchable
from redrive.core.stored import Count, LetterRow, Page
from redrive.stores.cursor import number_of
from redrive.stores.patience import Patience
from redrive.stores.sql import dated, texts
from redrive.stores.sql.chunks import chunks
from redrive.stores.sql.rows import LISTED, to_row
from redrive.stores.sql.tables import letter, tally_state

PATIENCE = 0.25  # seconds
FIRST_WINDOW = 20_000
LARGEST_WINDOW = 200_000
_LEADING = ("fingerprint", "queue", "error_type", "user_id")  # each has an index, nearly all with whether it is settled
_TALLIED = {"queue", "error_type", "reason"}
_ALL = 2**31 - 1

States = tuple[LetterState, ...]
_SIDES: Sequence[States] = [tuple(state for state in LetterState if state.settled is side) for side in (False, True)]
_FEW = frozenset({LetterState.REDRIVING, LetterState.PARKED})  # seldom many: the index by state leads to them


@dataclass(frozen=True, slots=True)
class Search:
    """Which letters are wanted, in which order of arrival.

    `few` are the numbers of all that hold its text, or are of its time, if these are few; in order. What came or
    reopened behind `last_news` is not wanted.
    """

    query: Query
    newest_first: bool = True
    few: Sequence[int] | None = None
    last_news: int | None = None

    @classmethod
    def of(cls, connection: Connection, query: Query, *, newest_first: bool = True) -> "Search":
        """The search that answers a query."""
        wanted = query.text.lower() if query.text else ""
        if query.text:
            few = texts.few(connection, wanted) if is_searchable(wanted) else None
        else:
            few = dated.few(connection, query) if query.dlq_entry_id is None else None
        return cls(query, newest_first, None if few is None else sorted(few))

    def is_led(self) -> bool:
        """Whether it is about something whose letters an index has in order, those that are settled apart."""
        asked = self.query.asked()
        few = bool(self.query.states) and _FEW.issuperset(self.query.states)
        return "dlq_entry_id" not in asked and not asked.isdisjoint(_LEADING) and not few

    def groups(self) -> Sequence[States]:
        """States to look at one group after the other, so that an index leads to each; none if any state will do."""
        if "dlq_entry_id" in self.query.asked():
            return [self.query.states] if self.query.states else ()
        if not self.is_led():
            return [(state,) for state in self.query.states]
        wanted = self.query.states or LetterState
        return [group for side in _SIDES if (group := tuple(state for state in side if state in wanted))]

    def first_window(self) -> int:
        """How many numbers to look through at first: all, if an index leads to exactly these letters or a few more."""
        asked = self.query.asked()
        if not asked or "dlq_entry_id" in asked:
            return _ALL
        if self.query.text:
            return min(FIRST_WINDOW, texts.FEW)  # many hold it: so do some of these
        if len(asked) > 1 or not self.is_led():
            return FIRST_WINDOW
        return _ALL if all(group in _SIDES for group in self.groups()) else LARGEST_WINDOW


def find(
    connection: Connection, query: Query, *, limit: int, after: str | None, patience: timedelta | None = None
) -> Page[LetterRow]:
    """A page, newest first."""
    page = find_numbers(connection, query, limit=limit, after=after, patience=patience)
    return Page(rows_of(connection, page.rows), page.after)


def find_numbers(
    connection: Connection, query: Query, *, limit: int, after: str | None, patience: timedelta | None = None
) -> Page[int]:
    """The numbers of a page."""
    below = number_of(after)
    looking = _looking(patience)
    search = Search.of(connection, query)
    found: list[int] = []
    for above, end in _windows(connection, search, below=below):
        found.extend(_numbers(connection, search, above=above, below=end, limit=limit + 1 - len(found)))
        if len(found) > limit:
            return Page(found[:limit], str(found[limit - 1]))
        if above > 0 and looking.is_over():
            return Page(found, str(above + 1))
    return Page(found)


def look_for(connection: Connection, search: Search, *, limit: int, columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    """These columns of the first `limit` letters, `seq` among them, as the driver gives them; however long it takes."""
    left = limit
    end = None if search.last_news is None else search.last_news + 1
    for above, below in _windows(connection, search, below=end):
        statement = _statement(connection, search, above=above, below=below, limit=left, columns=columns)
        with connection.execute(statement) as result:
            found = result.cursor.fetchall()
        yield from found
        left -= len(found)
        if left <= 0:
            break


def count(connection: Connection, query: Query, *, cap: int, patience: timedelta | None = None) -> Count:
    """How many there are: from the tally, or counted up to the cap, by an index or for a bounded time."""
    if query.asked() <= _TALLIED:
        return Count(_tallied(connection, query))
    if (of_that_time := dated.count(connection, query, cap=cap)) is not None:
        return of_that_time
    looking = _looking(patience)
    search = Search.of(connection, query)
    number = 0
    for above, below in _windows(connection, search):
        some = _statement(connection, search, above=above, below=below, limit=cap + 1 - number).subquery()
        number += connection.execute(select(func.count()).select_from(some)).scalar_one()
        if number > cap:
            return Count(cap, capped=True)
        if above > 0 and looking.is_over():
            return Count(number, capped=True)
    return Count(number)


def news(connection: Connection, *, after: str | None, limit: int) -> Page[LetterRow]:
    """Letters that came or reopened behind a cursor, oldest first."""
    present = texts.last_number(connection)  # who counts holds the counter until the commit: no lower number can come
    behind = present if after is None else min(number_of(after) or 0, present)
    # Nearly all came once: those are found by their number, and an index has only the others.
    came = select(letter.c.seq, letter.c.news).where(letter.c.seq > behind, letter.c.seq <= present)
    again = select(letter.c.seq, letter.c.news).where(letter.c.news > behind, letter.c.news <= present)
    looks = (
        came.where(letter.c.news == letter.c.seq).order_by(letter.c.seq).limit(limit).subquery(),
        again.where(letter.c.news != letter.c.seq).order_by(letter.c.news).limit(limit).subquery(),
    )
    new = union_all(*map(select, looks)).subquery()
    found = connection.execute(select(new).order_by(new.c.news).limit(limit)).all()
    return Page(rows_of(connection, [row.seq for row in found]), str(found[-1].news if found else behind))


def rows_of(connection: Connection, seqs: Sequence[int]) -> list[LetterRow]:
    """The letters with these numbers, in their order."""
    found = {}
    for some in chunks(seqs):
        for row in connection.execute(select(*LISTED).where(letter.c.seq.in_(some))).mappings():
            found[row["seq"]] = to_row(row)
    return [found[seq] for seq in seqs]


def _tallied(connection: Connection, query: Query) -> int:
    where = [tally_state.c[name] == value for name, value in query.equal_to().items()]
    if query.states:
        where.append(tally_state.c.state.in_([state.value for state in query.states]))
    return int(connection.execute(select(func.sum(tally_state.c.n)).where(*where)).scalar() or 0)


def _windows(connection: Connection, search: Search, *, below: int | None = None) -> Iterator[tuple[int, int]]:
    """Where to look, one after the other: behind the first number and before the second."""
    if search.few is not None:
        yield from _around(search.few, newest_first=search.newest_first, below=below)
        return
    end = texts.last_number(connection) + 1
    end = end if below is None else min(below, end)
    start, size = 0, search.first_window()
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


def _around(few: Sequence[int], *, newest_first: bool, below: int | None) -> Iterator[tuple[int, int]]:
    """The same, around a few numbers: some of them in each window, and nothing behind the last of them."""
    left = few if below is None else few[: bisect_left(few, below)]
    size = min(FIRST_WINDOW, texts.FEW)
    while left:
        some, left = (left[-size:], left[:-size]) if newest_first else (left[:size], left[size:])
        yield some[0] - 1 if left else 0, some[-1] + 1
        size *= 2


def _looking(patience: timedelta | None) -> Patience:
    return Patience(PATIENCE if patience is None else patience.total_seconds())


def _numbers(connection: Connection, search: Search, *, above: int, below: int, limit: int) -> list[int]:
    return [*connection.execute(_statement(connection, search, above=above, below=below, limit=limit)).scalars()]


def _statement(
    connection: Connection, search: Search, *, above: int, below: int, limit: int, columns: Sequence[str] = ("seq",)
) -> Select[Any]:
    query = search.query
    source = letter if query.dlq_entry_id is None else _of_entry(query.dlq_entry_id)
    conditions = _conditions(connection, search, source, above=above, below=below)
    base = select(*(source.c[name] for name in columns)).where(source.c.seq > above, source.c.seq < below, *conditions)
    groups = [_among(group, source, led=search.is_led()) for group in search.groups()]
    if len(groups) <= 1:
        return base.where(*(groups[0] if groups else ())).order_by(_order(search, source)).limit(limit)
    # An index has the group before the number: one look for each, merged, instead of sorting all of them.
    looks = [base.where(*group).order_by(_order(search, source)).limit(limit) for group in groups]
    merged = union_all(*(select(look.subquery()) for look in looks)).subquery()
    return select(merged).order_by(_order(search, merged)).limit(limit)


def _among(group: States, source: FromClause, *, led: bool) -> list[ColumnElement[bool]]:
    """Whether a letter is in one of these states."""
    if not led:
        return [source.c.state.in_([state.value for state in group])]
    # The others on this side are left out: asked for by name, a state has an index of its own, which leads to far more.
    settled = group[0].settled
    others = [state.value for state in _SIDES[settled] if state not in group]
    found = [source.c.settled == settled]
    return [*found, source.c.state.not_in(others)] if others else found


def _order(search: Search, source: FromClause) -> ColumnElement[Any]:
    return source.c.seq.desc() if search.newest_first else source.c.seq


def _of_entry(entry_id: str) -> FromClause:
    """The letters of an entry, which are few: the limit makes a database look for them before anything else."""
    return select(letter).where(letter.c.dlq_entry_id == entry_id).limit(_ALL).subquery()


def _conditions(
    connection: Connection, search: Search, source: FromClause, *, above: int, below: int
) -> list[ColumnElement[bool]]:
    query = search.query
    found: list[ColumnElement[bool]] = [source.c[name] == value for name, value in query.equal_to().items()]
    if query.from_at is not None:
        found.append(source.c.failed_at >= query.from_at)
    if query.to_at is not None:
        found.append(source.c.failed_at < query.to_at)
    if search.last_news is not None:
        found.append(source.c.news <= search.last_news)
    if search.few is not None:
        found.append(source.c.seq.in_(search.few[bisect_left(search.few, above + 1) : bisect_left(search.few, below)]))
    elif query.text:
        wanted = query.text.lower()
        matching = texts.matching(connection, wanted, above=above, below=below) if is_searchable(wanted) else ()
        found.append(source.c.seq.in_(matching))
    return found
