"""Letters by when they failed: an index has them by queue, state and instant, and is asked for each queue and state."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, literal, select, union_all

from redrive.core.query import Query
from redrive.core.stored import Count
from redrive.stores.sql.chunks import chunks
from redrive.stores.sql.tables import letter, tally_state

FEW = 10_000
_AT_ONCE = 100  # queues and states in one statement
_MOST = 1000  # with more of them, looking at each takes longer than looking through the letters
_ASKED = {"queue", "from_at", "to_at"}  # what the index knows of a letter, beside its state

Place = tuple[str, str]


def count(connection: Connection, query: Query, *, cap: int) -> Count | None:
    """How many there are, up to the cap; None if the index does not say it."""
    if not _is_dated(query) or not query.asked() <= _ASKED:
        return None
    places = _places(connection, query)
    number = None if places is None else _number(connection, query, places, most=cap + 1)
    return None if number is None else Count(min(number, cap), number > cap)


def few(connection: Connection, query: Query) -> list[int] | None:
    """The numbers of all letters of that time, in that queue and those states; None if they are not few."""
    places = _places(connection, query) if _is_dated(query) else None
    if places is None or _number(connection, query, places, most=FEW + 1) > FEW:
        return None
    found: list[int] = []
    for looks in _looks(query, places, letter.c.seq):
        found.extend(connection.execute(union_all(*looks)).scalars())
    return found


def _is_dated(query: Query) -> bool:
    return query.from_at is not None or query.to_at is not None


def _places(connection: Connection, query: Query) -> Sequence[Place] | None:
    """The queues and states in which there are letters; None if there are too many of them."""
    where = [tally_state.c.n > 0]
    if query.queue is not None:
        where.append(tally_state.c.queue == query.queue)
    if query.states:
        where.append(tally_state.c.state.in_([state.value for state in query.states]))
    statement = select(tally_state.c.queue, tally_state.c.state).where(*where).distinct().limit(_MOST + 1)
    found = [(queue, state) for queue, state in connection.execute(statement)]
    return None if len(found) > _MOST else sorted(found)


def _number(connection: Connection, query: Query, places: Sequence[Place], *, most: int) -> int:
    """How many there are; where there are `most`, some number from there on."""
    number = 0
    for looks in _looks(query, places, literal(1)):
        counts = [select(func.count()).select_from(look.limit(most).subquery()).scalar_subquery() for look in looks]
        number += sum(connection.execute(select(*counts)).one())
        if number >= most:
            break
    return number


def _looks(query: Query, places: Sequence[Place], column: ColumnElement[Any]) -> Iterator[list[Select[Any]]]:
    """For each of the places a look into the index, some in each statement."""
    within = [letter.c.failed_at >= query.from_at] if query.from_at is not None else []
    within += [letter.c.failed_at < query.to_at] if query.to_at is not None else []
    for some in chunks(places, size=_AT_ONCE):
        yield [select(column).where(letter.c.queue == queue, letter.c.state == state, *within) for queue, state in some]
