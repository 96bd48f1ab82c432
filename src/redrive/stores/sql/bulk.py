"""One statement for many rows, handed to the driver in one call: the hot path of collecting and redriving.

What SQLAlchemy does for each value of each row is done here for whole columns. SQLite runs the statement once for each
row, which costs it next to nothing. PostgreSQL would begin each run anew: there it is one statement that takes whole
columns, as arrays; or a COPY, if rows are only to be inserted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, Final, NamedTuple, cast

from sqlalchemy import Boolean, Connection, Dialect, Select, Table, Update, bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import ReturningInsert
from sqlalchemy.sql.elements import BindParameter
from sqlalchemy.sql.visitors import ExternallyTraversible, replacement_traverse
from sqlalchemy.types import TypeEngine

from redrive.stores.exact import ESCAPED, all_escaped, all_microseconds
from redrive.stores.sql.types import Instant, Json, Text, dumped, read_instant, read_json, read_text
from redrive.stores.sql.upsert import Insert, insert

Column = Sequence[Any]
Change = Callable[[Column], Iterable[Any]]
"""How a column is kept or read."""
Row = tuple[Any, ...]

COPIES: Final = "redrive_copies"
"""An option of connections that insert rows by COPY."""


def insert_rows(connection: Connection, table: Table, names: tuple[str, ...], rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows that have a value for each of these columns."""
    columns = [*zip(*rows, strict=True)]
    if columns:
        insert_columns(connection, table, names, columns)


def insert_columns(connection: Connection, table: Table, names: tuple[str, ...], columns: Sequence[Column]) -> None:
    """The same for rows that are given by columns, all of one length. What no row has is left to the table."""
    said = [(name, column) for name, column in zip(names, columns, strict=True) if _says(column)]
    names, columns = tuple(name for name, _ in said), [column for _, column in said]
    if connection.get_execution_options().get(COPIES):
        _copy(connection, table, names, columns)
    else:
        run_columns(connection, _inserting(table), names, columns)


def run_rows(
    connection: Connection, statement: Insert | Update, names: tuple[str, ...], rows: Iterable[Sequence[Any]]
) -> None:
    """Run a statement for each row, which has a value for each of these columns to insert, or of these parameters.

    The statement is one that is made once: what is found out about it is kept. No two rows are about the same one in
    the table, unless the second is to be passed over.
    """
    columns = [*zip(*rows, strict=True)]
    if columns:
        run_columns(connection, statement, names, columns)


def run_columns(
    connection: Connection, statement: Insert | Update, names: tuple[str, ...], columns: Sequence[Column]
) -> None:
    """`run_rows` of rows that are given by columns, all of one length."""
    text, places, at_once = _prepared(statement, names, connection.dialect)
    if at_once:
        connection.exec_driver_sql(text, tuple(place.whole(columns) for place in places))
    else:
        connection.exec_driver_sql(text, [*zip(*(place.column(columns) for place in places), strict=False)])


def _copy(connection: Connection, table: Table, names: tuple[str, ...], columns: Sequence[Column]) -> None:
    kept = (_KEPT_AS.get(type(table.c[name].type)) for name in names)
    rows = [*zip(*(keep(column) if keep else column for keep, column in zip(kept, columns, strict=True)), strict=True)]
    driver: Any = connection.connection.dbapi_connection
    try:
        driver.run_async(lambda raw: raw.copy_records_to_table(table.name, records=rows, columns=names))
    except (OSError, OverflowError):
        raise
    except Exception as error:
        # As SQLAlchemy tells of what goes wrong in statements; a dead connection is found out about at the rollback.
        raise DBAPIError(f"COPY {table.name}", None, error) from error


def fetch_rows(connection: Connection, statement: Select[Any] | ReturningInsert[Any], **given: Any) -> list[Row]:
    """All rows of a statement with these parameters. It is one that is made once, as for `run_rows`."""
    text, takes, gives = _asked(statement, connection.dialect)
    values = tuple(one.of(given) for one in takes)
    rows: Any = connection.exec_driver_sql(text, values).cursor.fetchall()
    if not rows or not any(gives):
        return [*rows]
    columns = zip(*rows, strict=True)
    read = [one if give is None else give(one) for give, one in zip(gives, columns, strict=True)]
    return [*zip(*read, strict=True)]


class _Place(NamedTuple):
    """A parameter: which column of the rows it takes, or the value that it always has."""

    number: int | None
    value: Any
    keep: Change | None

    def column(self, columns: Sequence[Column]) -> Iterable[Any]:
        if self.number is None:
            return repeat(self.value)
        return self.keep(columns[self.number]) if self.keep else columns[self.number]

    def whole(self, columns: Sequence[Column]) -> Any:
        return self.value if self.number is None else [*self.column(columns)]


@lru_cache(maxsize=256)
def _prepared(statement: Insert | Update, names: tuple[str, ...], dialect: Dialect) -> tuple[str, list[_Place], bool]:
    compiled = _compiled(_by_value(statement, names), dialect)
    at_once = dialect.name == "postgresql"
    if at_once:
        kinds = {name: compiled.binds[name].type for name in names}
        compiled = _compiled(_by_array(statement, kinds), dialect)
    kept_as = _KEPT_AS if at_once else _KEPT_IN_SQLITE_AS
    places = []
    for name in compiled.positiontup or ():
        keep = kept_as.get(type(_kind(compiled, name)))
        if name in names:
            places.append(_Place(names.index(name), None, keep))
        else:
            value = compiled.params[name]
            places.append(_Place(None, next(iter(keep([value]))) if keep else value, None))
    return str(compiled), places, at_once


def _by_value(statement: Insert | Update, names: tuple[str, ...]) -> Insert | Update:
    return statement.values({name: bindparam(name) for name in names}) if isinstance(statement, Insert) else statement


def _by_array(statement: Insert | Update, kinds: dict[str, TypeEngine[Any]]) -> Insert | Update:
    """The same for all rows at once: what were parameters are columns of a table that is made of arrays."""
    arrays = [bindparam(name, type_=ARRAY(kind)) for name, kind in kinds.items()]
    given = func.unnest(*arrays).table_valued(*kinds, name="given").render_derived()
    if isinstance(statement, Insert):
        return statement.from_select([*kinds], select(*given.c))

    def of_row(element: ExternallyTraversible, **_: Any) -> Any:
        return given.c[element.key] if isinstance(element, BindParameter) and element.key in kinds else None

    replaced: Any = replacement_traverse(statement, {}, of_row)
    return cast("Update", replaced)


class _Taken(NamedTuple):
    """A parameter of a question: the name that it is given by, or the value that it always has."""

    name: str | None
    value: Any
    keep: Callable[[Any], Any] | None

    def of(self, given: Mapping[str, Any]) -> Any:
        value = self.value if self.name is None else given[self.name]
        return self.keep(value) if self.keep else value


@lru_cache(maxsize=64)
def _asked(
    statement: Select[Any] | ReturningInsert[Any], dialect: Dialect
) -> tuple[str, list[_Taken], list[Change | None]]:
    """Its text, what it takes, and how its columns are read."""
    compiled = _compiled(statement, dialect)
    takes = []
    for name in compiled.positiontup or ():
        bind: BindParameter[Any] = compiled.binds[name]
        kind: Any = bind.type
        takes.append(_Taken(name if bind.required else None, bind.value, kind.bind_processor(dialect)))
    gives = [_READ_AS.get(type(column.type)) for column in statement.exported_columns]
    return str(compiled), takes, gives


def _compiled(statement: Insert | Update | Select[Any] | ReturningInsert[Any], dialect: Dialect) -> SQLCompiler:
    compiled = statement.compile(dialect=dialect)
    assert isinstance(compiled, SQLCompiler)  # noqa: S101 - it has parameters
    return compiled


def _kind(compiled: SQLCompiler, name: str) -> TypeEngine[Any]:
    kind: TypeEngine[Any] = compiled.binds[name].type
    return kind.item_type if isinstance(kind, ARRAY) else kind


@lru_cache(maxsize=16)
def _inserting(table: Table) -> Insert:
    return insert(table)


def _says(column: Column) -> bool:
    """Whether any row has a value."""
    return column[0] is not None or column.count(None) < len(column)


def _read_texts(column: Column) -> Iterable[Any]:
    return map(read_text, column) if ESCAPED in "".join(filter(None, column)) else column


def _jsons(column: Column) -> Iterable[Any]:
    if {*map(type, column)} == {bytes} and all(column):
        return column
    return _dumped(column)


def _dumped(column: Column) -> Iterator[bytes | None]:
    last = kept = None
    for value in column:
        if value is not last:  # many rows may hold the very same
            last, kept = value, dumped(value)
        yield kept


_KEPT_AS: dict[type, Change] = {
    Text: all_escaped,
    Instant: all_microseconds,
    Json: _jsons,
}
_KEPT_IN_SQLITE_AS = {**_KEPT_AS, Boolean: lambda column: map(int, column)}  # its driver asks others how to adapt them
_READ_AS: dict[type, Change] = {
    Boolean: lambda column: map(bool, column),  # of SQLite, which knows only numbers
    Text: _read_texts,
    Instant: lambda column: map(read_instant, column),
    Json: lambda column: map(read_json, column),
}
