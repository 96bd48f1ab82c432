"""Selecting letters: those that a preview shows and a redrive freezes, in one pass over no more than it needs.

A list reads its few letters by number once it has found them. A selection may be of many thousand: it takes what it
wants of each where it finds it, as the driver gives it; what most of them have in common is understood once.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection

from redrive.core.life import Life
from redrive.core.query import Query
from redrive.core.stored import Selected
from redrive.stores.exact import instant, unescaped
from redrive.stores.sql.rows import STATES
from redrive.stores.sql.searching import Search, look_for

_LIFE = ("state", "generation", "version")
_ALIKE = ("broker", "queue", "grp", "error_type", "app_version")
_COLUMNS = ("seq", "letter_id", "failed_at", *_LIFE, *_ALIKE)
_OWN = len(_COLUMNS) - len(_LIFE) - len(_ALIKE)


def select_rows(connection: Connection, query: Query, *, limit: int) -> list[Selected]:
    """The first `limit` letters, oldest first, however long it takes."""
    search = Search.of(connection, query, newest_first=False)
    return [*_selected(look_for(connection, search, limit=limit, columns=_COLUMNS))]


def _selected(rows: Iterable[Sequence[Any]]) -> Iterator[Selected]:
    understood: dict[Any, tuple[Any, ...]] = {}
    for row in rows:
        of_many = row[_OWN:]
        shared = understood.get(of_many)
        if shared is None:
            state, generation, version, *texts = of_many
            shared = Life(STATES[state], generation, version), *map(unescaped, texts)
            understood[of_many] = shared
        yield Selected(unescaped(row[1]), instant(row[2]), *shared)
