"""Letters as rows, and back."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import itemgetter
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, RowMapping

from redrive.core.attempt import RowTrail, Trail, WrittenTrail, dump_trail, from_rows
from redrive.core.letter import DeadLetter
from redrive.core.life import SETTLED, LetterState, Life
from redrive.core.message import Headers
from redrive.core.reason import Reason
from redrive.core.stored import LetterRow
from redrive.core.wire.record import from_pairs, to_pairs
from redrive.stores.ledger import Spot
from redrive.stores.sql.tables import letter, letter_body
from redrive.stores.sql.types import read_json

_OWN_NAMES = {"group": "grp", "generation": "died_in"}
_HOT = [field.name for field in fields(DeadLetter) if _OWN_NAMES.get(field.name, field.name) in letter.c]
_COLD = [field.name for field in fields(DeadLetter) if field.name in letter_body.c]
_PLAIN = [name for name in _COLD if name not in ("attempts", "headers", "context")]
_LISTED = [field.name for field in fields(LetterRow) if field.name != "life"]

HOT = ("state", "settled", "generation", "version", *(_OWN_NAMES.get(name, name) for name in _HOT))
COLD = ("attempts", "headers", "context", *_PLAIN)

LISTED: list[ColumnElement[Any]] = [
    *(letter.c[name] for name in ("seq", "state", "generation", "version")),
    *(letter.c[_OWN_NAMES.get(name, name)] for name in _LISTED),
]
"""What a list reads."""

Values = dict[str, Any]
Column = Sequence[Any]

_hot: Callable[[Values], tuple[Any, ...]] = itemgetter(*_HOT)
_plain: Callable[[Values], tuple[Any, ...]] = itemgetter(*_PLAIN)


def hot_columns(letters: Sequence[DeadLetter], lives: Sequence[Life]) -> list[Column]:
    """The columns of `letter`, named by `HOT`: all but the letters' numbers, those of their news and their notes."""
    states, generations, versions = zip(*lives, strict=True)
    names = [state.value for state in states]
    return [names, [state in SETTLED for state in states], generations, versions, *_columns(letters, _hot)]


def cold_columns(letters: Sequence[DeadLetter]) -> list[Column]:
    """The columns of `letter_body`, named by `COLD`: all but the letters' numbers."""
    attempts = [attempts_column(told.attempts) for told in letters]
    headers = [_quickly(to_pairs(told.headers)) if told.headers else None for told in letters]
    contexts = [_quickly(told.context) if told.context else None for told in letters]
    return [attempts, headers, contexts, *_columns(letters, _plain)]


def _columns(letters: Sequence[DeadLetter], said: Callable[[Values], Sequence[Any]]) -> list[Column]:
    return [*zip(*map(said, map(vars, letters)), strict=True)]


def hot_values(told: DeadLetter, life: Life) -> Values:
    """The same of one letter, by name."""
    return {name: column[0] for name, column in zip(HOT, hot_columns([told], [life]), strict=True)}


def cold_values(told: DeadLetter) -> Values:
    """The same of one letter, by name."""
    return {name: column[0] for name, column in zip(COLD, cold_columns([told]), strict=True)}


def attempts_column(trail: Trail) -> Any:
    """A trail for its column."""
    if isinstance(trail, WrittenTrail):
        return trail.raw
    if isinstance(trail, RowTrail):
        return _quickly(trail.rows)
    return dump_trail(trail[:]) if trail else None


def _quickly(plain: list[Any] | dict[str, Any]) -> Any:
    """Plain values as JSON, at a fifth of the cost; as they are, for their column to encode, if that may differ."""
    try:
        encoded = msgspec.json.encode(plain)
    except (ValueError, OverflowError, RecursionError, TypeError):  # UTF-8 cannot say it, or it is not so plain
        return plain
    return plain if b"null" in encoded else encoded  # a number that is none would become that


def to_letter(row: RowMapping) -> DeadLetter:
    """The letter of a row of both tables."""
    values = {name: row[_OWN_NAMES.get(name, name)] for name in _HOT} | {name: row[name] for name in _COLD}
    values["reason"] = Reason(row["reason"])
    values["headers"] = to_headers(row["headers"])
    values["attempts"] = from_rows(row["attempts"])
    values["context"] = row["context"] or {}
    return DeadLetter(**values)


def read_headers(kept: bytes | None) -> Headers:
    """Headers from their column."""
    if kept is None:
        return ()
    try:
        return from_pairs(msgspec.json.decode(kept))
    except ValueError:  # it says what UTF-8 cannot
        return from_pairs(read_json(kept))


def to_headers(pairs: Any) -> Headers:
    """Headers from their JSON."""
    return from_pairs(pairs)


def to_life(row: RowMapping) -> Life:
    """What state a letter is in."""
    return Life(STATES[row["state"]], row["generation"], row["version"])


def to_row(row: RowMapping) -> LetterRow:
    """A letter in a list."""
    values: Values = {name: row[_OWN_NAMES.get(name, name)] for name in _LISTED}
    return LetterRow(life=to_life(row), **values)


def to_spot(row: RowMapping) -> Spot:
    """Where a letter is counted."""
    return Spot(row["queue"], STATES[row["state"]], row["error_type"], row["reason"], row["fingerprint"])


STATES = {state.value: state for state in LetterState}

SPOT = [letter.c[name] for name in ("queue", "state", "error_type", "reason", "fingerprint")]


def spot_of(told: DeadLetter, life: Life) -> Spot:
    """Where a letter is counted from now on."""
    return Spot(told.queue, life.state, told.error_type, told.reason.value, told.fingerprint)
