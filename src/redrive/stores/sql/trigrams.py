"""PostgreSQL's index on text: a GIN index over every three characters, where the extension pg_trgm may be had.

The server keeps it up to date by itself, which costs more than keeping a letter: texts wait in `letter_text`, which has
no such index, until there is time to move them to `letter_index`. Without one a search finds the same, and looks
through every text.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    String,
    and_,
    column,
    delete,
    func,
    select,
    table,
    text,
    union_all,
    update,
)
from sqlalchemy.exc import DBAPIError

from redrive.stores.sql.tables import letter_text
from redrive.stores.sql.types import Number

_GRAM: Final = 3
_LONG: Final = 20  # characters
_INDEX: Final = "letter_text_grams"
_EXPECTED: Final = text("EXPLAIN (FORMAT JSON) SELECT seq FROM letter_index WHERE text LIKE :pattern")
_MOVE: Final = text(
    "WITH moved AS (DELETE FROM letter_text WHERE seq IN (SELECT seq FROM letter_text ORDER BY seq LIMIT :most)"
    " RETURNING seq, text) INSERT INTO letter_index (seq, text) SELECT seq, text FROM moved"
)
_indexed = table("letter_index", column("seq", Number), column("text", String))


def create_index(connection: Connection) -> None:
    """The extension and the index; neither, if the server has no such extension or this user may not create it.

    As the second migration makes it: the table has had another name since.
    """
    try:
        with connection.begin_nested():
            connection.execute(text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
            connection.execute(text(f"CREATE INDEX {_INDEX} ON letter_text USING gin (text gin_trgm_ops)"))
    except DBAPIError as error:
        if error.connection_invalidated:
            raise


def index_more(connection: Connection, *, most: int) -> bool:
    """Index texts that wait, the oldest first; True if there may be more."""
    return connection.execute(_MOVE, {"most": most}).rowcount == most


def replace(connection: Connection, seq: int, told: str) -> None:
    """A letter says something else now: its text stays where it is."""
    for place in (letter_text, _indexed):
        connection.execute(update(place).where(place.c.seq == seq).values(text=told))


def remove(connection: Connection, seqs: Sequence[int]) -> None:
    """Forget indexed texts."""
    connection.execute(delete(_indexed).where(_indexed.c.seq.in_(seqs)))


def matching(connection: Connection, wanted: str, *, above: int, below: int) -> Select[Any]:
    """The numbers, between these two, of texts that hold `wanted`; to be asked in this transaction."""
    _plan_for_each(connection)
    looks = [
        select(place.c.seq).where(place.c.seq > above, place.c.seq < below, _holds(place, wanted))
        for place in (_indexed, letter_text)
    ]
    return select(union_all(*looks).subquery().c.seq)


def few(connection: Connection, wanted: str, *, most: int) -> Sequence[int] | None:
    """The numbers of all texts that hold `wanted`; None if `most` or more may do so, also of those that wait.

    The server says beforehand how many it expects, and whether its index leads to them.
    """
    _plan_for_each(connection)
    (expected,) = _read(connection.execute(_EXPECTED, {"pattern": _pattern(wanted)}).scalar_one())
    if _INDEX not in json.dumps(expected) or expected["Plan"]["Plan Rows"] >= most:
        return None
    waiting = [*connection.execute(select(letter_text.c.seq).limit(most)).scalars()]
    found = [*connection.execute(select(_indexed.c.seq).where(_holds(_indexed, wanted))).scalars()]
    if len(found) + len(waiting) >= most:
        return None
    holding = select(letter_text.c.seq).where(letter_text.c.seq.in_(waiting), _holds(letter_text, wanted))
    return [*found, *connection.execute(holding).scalars()]


def _plan_for_each(connection: Connection) -> None:
    # After five searches on a connection the server would take one plan for any text, which does not use the index.
    connection.execute(text("SET LOCAL plan_cache_mode = force_custom_plan"))


def _holds(place: FromClause, wanted: str) -> ColumnElement[bool]:
    like = place.c.text.like(_pattern(wanted))
    return and_(like, func.strpos(place.c.text, wanted) > 0) if len(wanted) > _LONG else like


def _pattern(wanted: str) -> str:
    """What the index looks for: a short text, or parts of a long one, since it looks up every three characters."""
    long = len(wanted) > _LONG
    parts = [wanted[at : at + _GRAM] for at in range(0, len(wanted) - _GRAM + 1, _GRAM + 1)] if long else [wanted]
    return f"%{'%'.join(map(_literally, parts))}%"


def _literally(wanted: str) -> str:
    for sign in ("\\", "%", "_"):
        wanted = wanted.replace(sign, f"\\{sign}")
    return wanted


def _read(plan: Any) -> Any:
    return json.loads(plan) if isinstance(plan, str) else plan
