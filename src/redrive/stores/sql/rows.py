"""Letters as rows, and back."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter, itemgetter
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
_REASON = _HOT.index("reason")
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

_texts_in_pairs = msgspec.json.Decoder(list[tuple[str, str]]).decode

_hot: Callable[[Values], tuple[Any, ...]] = itemgetter(*_HOT)
_plain: Callable[[Values], tuple[Any, ...]] = itemgetter(*_PLAIN)


def hot_columns(letters: Sequence[DeadLetter], lives: Sequence[Life]) -> list[Column]:
    """The columns of `letter`, named by `HOT`: all but the letters' numbers, those of their news and their notes."""
    states, generations, versions = zip(*lives, strict=True)
    columns = _columns(letters, _hot)
    columns[_REASON] = _plainly(columns[_REASON])
    return [_plainly(states), [state in SETTLED for state in states], generations, versions, *columns]


def cold_columns(letters: Sequence[DeadLetter]) -> list[Column]:
    """The columns of `letter_body`, named by `COLD`: all but the letters' numbers."""
    attempts = [attempts_column(told.attempts) for told in letters]
    headers = [_quickly(to_pairs(told.headers)) if told.headers else None for told in letters]
    contexts = [_quickly(told.context) if told.context else None for told in letters]
    return [attempts, headers, contexts, *_columns(letters, _plain)]


def _columns(letters: Sequence[DeadLetter], said: Callable[[Values], Sequence[Any]]) -> list[Column]:
    return [*zip(*map(said, map(vars, letters)), strict=True)]


def _plainly(names: Sequence[str]) -> list[str]:
    """Texts, of members of an enum: a driver asks everything else how it is to be kept."""
    return [*map(str.__str__, names)]


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
        return tuple([(name, value.encode()) for name, value in _texts_in_pairs(kept)])
    except ValueError:  # it says what UTF-8 cannot, or a value that is none
        return from_pairs(read_json(kept))


def to_headers(pairs: Any) -> Headers:
    """Headers from their JSON."""
    return from_pairs(pairs)


@lru_cache(maxsize=256)
def life_of(state: str, generation: int, version: int) -> Life:
    """What state a letter is in. Those of a batch have few lives: each is made once."""
    return Life(STATES[state], generation, version)


def to_life(row: RowMapping) -> Life:
    """The same, of a row."""
    return life_of(row["state"], row["generation"], row["version"])


def to_row(row: RowMapping) -> LetterRow:
    """A letter in a list."""
    values: Values = {name: row[_OWN_NAMES.get(name, name)] for name in _LISTED}
    return LetterRow(life=to_life(row), **values)


def to_spot(row: RowMapping) -> Spot:
    """Where a letter is counted."""
    return Spot(row["queue"], STATES[row["state"]], row["error_type"], row["reason"], row["fingerprint"])


STATES = {state.value: state for state in LetterState}

SPOT = [letter.c[name] for name in ("queue", "state", "error_type", "reason", "fingerprint")]


Place = tuple[str, str, Reason, str]
"""Where a letter is counted, whatever its state: queue, error type, reason, fingerprint."""

place_of: Callable[[DeadLetter], Place] = attrgetter("queue", "error_type", "reason", "fingerprint")


def spot_at(place: Place, state: LetterState) -> Spot:
    """Where a letter of this place is counted in this state."""
    queue, error_type, reason, fingerprint = place
    return Spot(queue, state, error_type, reason.value, fingerprint)
