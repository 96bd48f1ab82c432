"""PostgreSQL's index on text: a GIN index over every three characters, where the extension pg_trgm may be had.

The server keeps it up to date by itself. Without it a search finds the same, and looks through every text.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, and_, func, select, text
from sqlalchemy.exc import DBAPIError

from redrive.stores.sql.tables import letter_text

_GRAM: Final = 3
_LONG: Final = 20  # characters
_INDEX: Final = "letter_text_grams"
_EXPECTED: Final = text("EXPLAIN (FORMAT JSON) SELECT seq FROM letter_text WHERE text LIKE :pattern")


def create_index(connection: Connection) -> None:
    """The extension and the index; neither, if the server has no such extension or this user may not create it."""
    try:
        with connection.begin_nested():
            connection.execute(text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
            connection.execute(text(f"CREATE INDEX {_INDEX} ON letter_text USING gin (text gin_trgm_ops)"))
    except DBAPIError as error:
        if error.connection_invalidated:
            raise


def matching(connection: Connection, wanted: str, *, above: int, below: int) -> Select[Any]:
    """The numbers, between these two, of texts that hold `wanted`; to be asked in this transaction."""
    _plan_for_each(connection)
    within = (letter_text.c.seq > above, letter_text.c.seq < below)
    return select(letter_text.c.seq).where(*within, _holds(wanted))


def few(connection: Connection, wanted: str, *, most: int) -> Sequence[int] | None:
    """The numbers of all texts that hold `wanted`; None if there are, or may be, `most` of them or more.

    The server says beforehand how many it expects, and whether its index leads to them.
    """
    _plan_for_each(connection)
    (expected,) = _read(connection.execute(_EXPECTED, {"pattern": _pattern(wanted)}).scalar_one())
    if _INDEX not in json.dumps(expected) or expected["Plan"]["Plan Rows"] >= most:
        return None
    found = [*connection.execute(select(letter_text.c.seq).where(_holds(wanted))).scalars()]
    return found if len(found) < most else None


def _plan_for_each(connection: Connection) -> None:
    # After five searches on a connection the server would take one plan for any text, which does not use the index.
    connection.execute(text("SET LOCAL plan_cache_mode = force_custom_plan"))


def _holds(wanted: str) -> ColumnElement[bool]:
    like = letter_text.c.text.like(_pattern(wanted))
    return and_(like, func.strpos(letter_text.c.text, wanted) > 0) if len(wanted) > _LONG else like


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
