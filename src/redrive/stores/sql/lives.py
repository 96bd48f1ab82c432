"""What state letters are in: the columns that change when they move."""

from collections.abc import Iterable
from functools import lru_cache

from sqlalchemy import Connection, bindparam, update

from redrive.core.life import LetterState, Life
from redrive.stores.sql.bulk import run_rows
from redrive.stores.sql.tables import letter

_AT = update(letter).where(letter.c.seq == bindparam("at"))
_SENT = ("state", "generation", "version")
_SEND = _AT.values({name: bindparam(name) for name in _SENT})
_LIFE = ("settled", *_SENT)
_MOVE = _AT.values({name: bindparam(name) for name in _LIFE})
_NEWS = _AT.values(news=bindparam("number"))


def put(connection: Connection, lives: Iterable[tuple[int, Life]]) -> None:
    """Give the letters with these numbers a new life."""
    sent, moved = [], []
    for seq, life in lives:
        if life.state is LetterState.REDRIVING:  # was not settled before: most indexes need not know
            sent.append((seq, *_values(life)[1:]))
        else:
            moved.append((seq, *_values(life)))
    run_rows(connection, _SEND, ("at", *_SENT), sent)
    run_rows(connection, _MOVE, ("at", *_LIFE), moved)


@lru_cache(maxsize=256)
def _values(life: Life) -> tuple[bool, str, int, int]:
    return life.state.settled, life.state.value, life.generation, life.version


def put_news(connection: Connection, numbers: Iterable[tuple[int, int]]) -> None:
    """Number the news of the letters with these numbers."""
    run_rows(connection, _NEWS, ("at", "number"), numbers)
