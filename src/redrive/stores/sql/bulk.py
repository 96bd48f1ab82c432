"""One statement for many rows, handed to the driver in one call: the hot path of collecting and redriving.

What SQLAlchemy does for each value of each row is done here for whole columns.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple

from sqlalchemy import Connection, Dialect, Table, Update, bindparam
from sqlalchemy.sql.compiler import SQLCompiler

from redrive.stores.exact import microseconds
from redrive.stores.sql.types import Instant, Json, Text, dumped, written
from redrive.stores.sql.upsert import Insert, insert

Column = Iterable[Any]


def insert_rows(connection: Connection, table: Table, names: tuple[str, ...], rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows that have a value for each of these columns."""
    run_rows(connection, _inserting(table, names), names, rows)


def run_rows(
    connection: Connection, statement: Insert | Update, names: tuple[str, ...], rows: Iterable[Sequence[Any]]
) -> None:
    """Run a statement for each row, which has a value for each of these parameters.

    The statement is one that is made once: what is found out about it is kept.
    """
    columns = [*zip(*rows, strict=True)]
    if not columns:
        return
    text, places = _prepared(statement, names, connection.dialect)
    connection.exec_driver_sql(text, [*zip(*(place.column(columns) for place in places), strict=False)])


class _Place(NamedTuple):
    """A parameter: which column of the rows it takes, or the value that it always has."""

    number: int | None
    value: Any
    keep: Callable[[Column], Column] | None

    def column(self, columns: Sequence[Column]) -> Column:
        if self.number is None:
            return repeat(self.value)
        return self.keep(columns[self.number]) if self.keep else columns[self.number]


@lru_cache(maxsize=64)
def _prepared(statement: Insert | Update, names: tuple[str, ...], dialect: Dialect) -> tuple[str, list[_Place]]:
    compiled = statement.compile(dialect=dialect)
    assert isinstance(compiled, SQLCompiler)  # noqa: S101 - it has parameters
    places = []
    for name in compiled.positiontup or ():
        keep = _KEPT_AS.get(type(compiled.binds[name].type))
        if name in names:
            places.append(_Place(names.index(name), None, keep))
        else:
            value = compiled.params[name]
            places.append(_Place(None, next(iter(keep([value]))) if keep else value, None))
    return str(compiled), places


@lru_cache(maxsize=16)
def _inserting(table: Table, names: tuple[str, ...]) -> Insert:
    return insert(table).values({name: bindparam(name) for name in names})


def _texts(column: Column) -> Column:
    together = "".join(filter(None, column))
    return column if together.isascii() and "\x00" not in together else map(written, column)


_KEPT_AS: dict[type, Callable[[Column], Column]] = {
    Text: _texts,
    Instant: lambda column: map(microseconds, column),
    Json: lambda column: map(dumped, column),
}
