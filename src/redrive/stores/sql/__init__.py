"""Letters in an SQL database: one schema, on SQLite and PostgreSQL."""

from importlib.util import find_spec

from redrive.core.errors import MissingExtra

if find_spec("sqlalchemy") is None or find_spec("alembic") is None:
    raise MissingExtra("the letter store", extra="store")

from redrive.stores.sql.store import SqlStore

__all__ = ["SqlStore"]
