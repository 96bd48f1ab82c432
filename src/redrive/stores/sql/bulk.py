"""Many rows of one table, handed to the driver in one call: the hot path of collecting."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Dialect, Table, insert

from redrive.stores.sql.types import Instant, Json, Text, dumped, escaped, microseconds

_KEPT_AS: dict[type, Callable[[Any], Any]] = {Text: escaped, Instant: microseconds, Json: dumped}


def insert_rows(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows that name every column. What SQLAlchemy does for each value of each row is done here, and once."""
    statement, columns = _prepared(table, connection.dialect)
    values = [tuple([keep(row[name]) if keep else row[name] for name, keep in columns]) for row in rows]
    if values:
        connection.exec_driver_sql(statement, values)


@lru_cache(maxsize=32)
def _prepared(table: Table, dialect: Dialect) -> tuple[str, list[tuple[str, Callable[[Any], Any] | None]]]:
    columns = [(column.name, _KEPT_AS.get(type(column.type))) for column in table.columns]
    return str(insert(table).compile(dialect=dialect)), columns
