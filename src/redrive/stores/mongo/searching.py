"""Finding letters by number, piece by piece, so that no question holds anybody up for long.

A question that an index answers is asked at once. Any other looks through windows of numbers, each larger than the one
before, until it has what it wants or has looked for long enough; a cursor says where to go on.
"""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.core.stored import Count, LetterRow, Page, Selected
from redrive.stores.cursor import number_of
from redrive.stores.exact import microseconds
from redrive.stores.mongo.documents import LISTED, SELECTED, Document, path_of, to_row, to_selected
from redrive.stores.mongo.journal import last_numbers
from redrive.stores.mongo.shelves import DOWN, LETTERS, TALLIES, UP, Shelves
from redrive.stores.mongo.values import is_plain, to_text
from redrive.stores.patience import Patience

PATIENCE = 0.25  # seconds
FIRST_WINDOW = 20_000
LARGEST_WINDOW = 200_000
_LEADING = {"fingerprint", "queue", "error_type", "user_id", "dlq_entry_id"}  # each has an index
_TALLIED = {"queue", "error_type", "reason"}
_DATED = {"queue", "from_at", "to_at"}  # an index has these behind each other, with the state


@dataclass(frozen=True, slots=True)
class Search:
    """Which letters are wanted, in which order of arrival; not those that came or reopened behind `last_news`."""

    query: Query
    newest_first: bool = True
    last_news: int | None = None

    def is_indexed(self) -> bool:
        """Whether an index leads to exactly these letters, or to a few more."""
        asked = self.query.asked()
        return not asked or (len(asked) == 1 and asked <= _LEADING) or "dlq_entry_id" in asked

    def filter(self, *, above: int, below: int) -> Document:
        """The letters between two numbers that are wanted."""
        query = self.query
        where: Document = {path_of(name): to_text(wanted) for name, wanted in query.equal_to().items()}
        if query.states:
            where["redrive.state"] = {"$in": [state.value for state in query.states]}
        where |= _dates(query)
        if query.text:
            where["redrive.text"] = {"$regex": re.escape(query.text.lower())}
        if self.last_news is not None:
            where["redrive.news"] = {"$lte": self.last_news}
        return {**where, "_id": {"$gt": above, "$lt": below}}

    @property
    def order(self) -> list[tuple[str, int]]:
        """The order of arrival."""
        return [("_id", DOWN if self.newest_first else UP)]

    async def windows(self, shelves: Shelves, *, below: int | None = None) -> AsyncIterator[tuple[int, int]]:
        """Where to look, one after the other: behind the first number and before the second."""
        if self.query.text and not is_plain(self.query.text.lower()):
            return  # searchable text holds neither U+0000 nor lone surrogates
        end = await _last_number(shelves) + 1
        end = end if below is None else min(below, end)
        if self.is_indexed():
            yield 0, end
            return
        start, size = 0, FIRST_WINDOW
        while start < end - 1:
            if self.newest_first:
                edge = max(end - 1 - size, 0)
                yield edge, end
                end = edge + 1
            else:
                edge = min(start + size, end - 1)
                yield start, edge + 1
                start = edge
            size = min(size * 2, LARGEST_WINDOW)


async def find(
    shelves: Shelves, query: Query, *, limit: int, after: str | None, patience: timedelta | None = None
) -> Page[LetterRow]:
    """A page, newest first."""
    page = await find_documents(shelves, query, limit=limit, after=after, patience=patience)
    return Page([*map(to_row, page.rows)], page.after)


async def find_documents(
    shelves: Shelves, query: Query, *, limit: int, after: str | None, patience: timedelta | None = None
) -> Page[Document]:
    """The documents of a page, as far as a list reads them."""
    below = number_of(after)
    looking = _looking(patience)
    found: list[Document] = []
    search = Search(query)
    async for above, end in search.windows(shelves, below=below):
        found += await _look(shelves, search, above=above, below=end, limit=limit + 1 - len(found), fields=LISTED)
        if len(found) > limit:
            return Page(found[:limit], str(found[limit - 1]["_id"]))
        if above > 0 and looking.is_over():
            return Page(found, str(above + 1))
    return Page(found)


async def first(shelves: Shelves, search: Search, *, limit: int, fields: Document) -> list[Document]:
    """The first `limit` letters, however long it takes."""
    found: list[Document] = []
    async for above, below in search.windows(shelves):
        if len(found) >= limit:
            break
        found += await _look(shelves, search, above=above, below=below, limit=limit - len(found), fields=fields)
    return found


async def select(shelves: Shelves, query: Query, *, limit: int, upto: str | None) -> list[Selected]:
    """The first `limit` letters, oldest first; without what is news behind a cursor."""
    search = Search(query, newest_first=False, last_news=number_of(upto))
    return [*map(to_selected, await first(shelves, search, limit=limit, fields=SELECTED))]


async def count(shelves: Shelves, query: Query, *, cap: int, patience: timedelta | None = None) -> Count:
    """How many there are: from the tally, or counted up to the cap, by an index or for a bounded time."""
    search = Search(query)
    if search.query.asked() <= _TALLIED:
        return Count(await _tallied(shelves, query))
    if search.query.asked() <= _DATED:
        return await _dated(shelves, query, cap=cap)
    looking = _looking(patience)
    number = 0
    async for above, below in search.windows(shelves):
        where = search.filter(above=above, below=below)
        number += await shelves[LETTERS].count_documents(where, limit=cap + 1 - number)
        if number > cap:
            return Count(cap, capped=True)
        if above > 0 and looking.is_over():
            return Count(number, capped=True)
    return Count(number)


async def news(shelves: Shelves, *, after: str | None, limit: int) -> Page[LetterRow]:
    """Letters that came or reopened behind a cursor, oldest first."""
    asked = number_of(after)
    present = await _last_number(shelves)  # of those who have finished: no lower number can come
    behind = present if asked is None else min(asked, present)
    where = {"redrive.news": {"$gt": behind, "$lte": present}}
    fields = {**LISTED, "redrive.news": 1}
    found = await shelves.many(LETTERS, where, fields=fields, order=[("redrive.news", UP)], limit=limit)
    return Page([*map(to_row, found)], str(found[-1]["redrive"]["news"] if found else behind))


async def _last_number(shelves: Shelves) -> int:
    return (await last_numbers(shelves)).get("letter", 0)


async def _look(
    shelves: Shelves, search: Search, *, above: int, below: int, limit: int, fields: Document
) -> list[Document]:
    where = search.filter(above=above, below=below)
    return await shelves.many(LETTERS, where, fields=fields, order=search.order, limit=limit)


def _looking(patience: timedelta | None) -> Patience:
    return Patience(PATIENCE if patience is None else patience.total_seconds())


async def _dated(shelves: Shelves, query: Query, *, cap: int) -> Count:
    """Those of a time, counted in the index: it has them by queue and state, so all of these are named."""
    queues = sorted({one["queue"] for one in await shelves.many(TALLIES, _where(query), fields={"queue": 1})})
    states = [state.value for state in query.states or LetterState]
    where = {path_of("queue"): {"$in": queues}, "redrive.state": {"$in": states}, **_dates(query)}
    number = await shelves[LETTERS].count_documents(where, limit=cap + 1)
    return Count(min(number, cap), number > cap)


def _dates(query: Query) -> Document:
    failed_at = {"$gte": microseconds(query.from_at), "$lt": microseconds(query.to_at)}
    given = {sign: number for sign, number in failed_at.items() if number is not None}
    return {"redrive.failed_at": given} if given else {}


async def _tallied(shelves: Shelves, query: Query) -> int:
    return sum(one["n"] for one in await shelves.many(TALLIES, _where(query), fields={"n": 1}))


def _where(query: Query) -> Document:
    """The tallies of what is asked for."""
    where: Document = {name: to_text(value) for name, value in query.equal_to().items()}
    return {**where, "state": {"$in": [state.value for state in query.states]}} if query.states else where
