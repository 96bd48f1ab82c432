"""The database at hand: what the store asks of it, whichever it is.

What runs there are plain functions over a connection, the same for all. How a transaction is begun, on which thread or
loop it runs and what can go wrong is the business of `sqlite` and `postgres`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import Connection

P = ParamSpec("P")
T = TypeVar("T")


class Database(Protocol):
    """Opened, created and brought forward at the first call; safe for many tasks and processes.

    Every call is one transaction. Raises `StoreUnavailable` and `StoreError`, never what the driver raises.
    """

    async def read(self, call: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that only reads, on one state of the data; many at a time."""
        ...

    async def write(self, call: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that writes; one at a time, over all processes.

        It is carried out even if the caller is cancelled meanwhile. It may be run again from its beginning, if the
        database has undone it.
        """
        ...

    async def aclose(self) -> None:
        """Finish what runs, and close. Idempotent."""
        ...


def open_database(place: str | Path) -> Database:
    """The database at a path, SQLite's, or at a `postgresql://` URL. Raises `ConfigError`, `MissingExtra`."""
    if isinstance(place, str) and place.startswith(("postgresql://", "postgres://")):
        from redrive.stores.sql.postgres import PostgresDatabase  # noqa: PLC0415 - its driver may not be installed

        return PostgresDatabase(place)
    from redrive.stores.sql.sqlite import SqliteDatabase  # noqa: PLC0415 - as the other

    return SqliteDatabase(Path(place))
