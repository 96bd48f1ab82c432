"""Selecting letters: those that a preview shows and a redrive freezes, in one pass over no more than it needs.

A list reads its few letters by number once it has found them. A selection may be of many thousand: it takes what it
wants of each where it finds it, as the driver gives it; what most of them have in common is understood once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, and_, exists, select

from redrive.core.errors import LetterNotFound
from redrive.core.life import Life
from redrive.core.query import Query
from redrive.core.stored import Selected
from redrive.stores.cursor import number_of
from redrive.stores.exact import instant, unescaped
from redrive.stores.sql.among import among
from redrive.stores.sql.chunks import chunks
from redrive.stores.sql.rows import STATES
from redrive.stores.sql.searching import Search, look_for
from redrive.stores.sql.tables import letter, letter_body, letter_edit

_LIFE = ("state", "generation", "version")
_ALIKE = ("broker", "queue", "grp", "error_type", "app_version")
_COLUMNS = ("seq", "letter_id", "failed_at", *_LIFE, *_ALIKE)
_OWN = len(_COLUMNS) - len(_LIFE) - len(_ALIKE)
_EDITED = exists().where(letter_edit.c.letter_id == letter.c.letter_id)
_IS_EMPTY = and_(letter_body.c.payload.is_(None), ~_EDITED)
_NAMED = select(*(letter.c[name] for name in _COLUMNS), _IS_EMPTY).join_from(
    letter, letter_body, letter.c.seq == letter_body.c.seq
)


def select_rows(connection: Connection, query: Query, *, limit: int, upto: str | None) -> list[Selected]:
    """The first `limit` letters, oldest first, however long it takes; without what is news behind a cursor."""
    last = number_of(upto)
    search = replace(Search.of(connection, query, newest_first=False), last_news=last)
    return [*_selected(look_for(connection, search, limit=limit, columns=_COLUMNS))]


def select_named(connection: Connection, letter_ids: Sequence[str]) -> list[Selected]:
    """These letters, in the order asked, each once. Raises `LetterNotFound`."""
    found: dict[str, Selected] = {}
    for some in chunks([*dict.fromkeys(letter_ids)]):
        with connection.execute(_NAMED.where(among(letter.c.letter_id, some))) as result:
            rows = result.cursor.fetchall()
        for row, one in zip(rows, _selected([row[:-1] for row in rows]), strict=True):
            found[one.letter_id] = one._replace(sendable=not row[-1])
    for name in letter_ids:
        if name not in found:
            raise LetterNotFound(f"no letter {name!r} is in the store")
    return [found[name] for name in dict.fromkeys(letter_ids)]


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
