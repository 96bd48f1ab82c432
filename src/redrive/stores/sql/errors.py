"""The one place where the databases' exceptions become ours."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from redrive.core.errors import StoreError, StoreUnavailable

_SQLITE_FOR_NOW: Final = {
    sqlite3.SQLITE_BUSY: "another process keeps the file locked",
    sqlite3.SQLITE_LOCKED: "the file is locked",
    sqlite3.SQLITE_FULL: "the disk is full, or the file has reached its largest size",
    sqlite3.SQLITE_IOERR: "the disk does not do what it is asked to",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened: does its folder exist, and may we write there?",
    sqlite3.SQLITE_READONLY: "the file cannot be written to",
    sqlite3.SQLITE_PERM: "access to the file is denied",
    sqlite3.SQLITE_AUTH: "access to the file is denied",
    sqlite3.SQLITE_NOMEM: "no memory is left",
    sqlite3.SQLITE_PROTOCOL: "the locks of the file are in dispute",
    sqlite3.SQLITE_INTERRUPT: "the operation was interrupted",
}
_SQLITE_FOR_GOOD: Final = {
    sqlite3.SQLITE_CORRUPT: "the file is damaged; restore it from a copy",
    sqlite3.SQLITE_NOTADB: "this is not an SQLite file",
    sqlite3.SQLITE_TOOBIG: "the letter is larger than SQLite can keep",
}
_POOLED: Final = "a pooler changes connections under our statements; the URL needs ?prepared_statement_cache_size=0"
# By SQLSTATE, or its first two characters, which are its class.
_POSTGRES_FOR_NOW: Final = {
    "08": "the connection is lost",
    "25006": "the server only reads: is it a standby?",
    "25P03": "the server has ended a transaction that stood still",
    "26000": _POOLED,
    "28": "the server does not let this user in",
    "3D000": "the server has no such database",
    "40": "the server undid the transaction, again and again",
    "42501": "this user may not do that",
    "42P05": _POOLED,
    "53": "the server is short of disk, memory or connections",
    "55P03": "another process keeps the store locked",
    "57": "the server is going down, coming up, or was told to stop this",
    "58": "the server's disk does not do what it is asked to",
}
_POSTGRES_FOR_GOOD: Final = {
    "22": "the letter holds what PostgreSQL cannot keep",
    "54": "the letter has a name that is longer than PostgreSQL can keep in an index",
    "XX": "the server has found a fault in itself",
}
_UNDONE: Final = ("40001", "40P01")  # another transaction was in the way, or each waited for the other


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Raise `StoreUnavailable` or `StoreError` instead of what the driver raises; everything else stays what it is."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OverflowError, OSError) as error:
        raise _ours(error, where) from error


def was_undone(error: DBAPIError) -> bool:
    """Whether the database has undone the transaction for another's sake: it may simply be done again."""
    return _sqlstate(_cause(error)) in _UNDONE


def _ours(error: Exception, where: str) -> StoreError:
    cause = _cause(error)
    if isinstance(error, PoolTimeout):
        return StoreUnavailable(f"{where}: every connection is busy ({error})")
    if isinstance(cause, OSError):
        return StoreUnavailable(f"{where}: the server does not answer ({str(cause) or type(cause).__name__})")
    if isinstance(cause, sqlite3.Error | OverflowError):
        return _from_sqlite(cause, where)
    return _from_postgres(error, where)


def _from_sqlite(cause: BaseException, where: str) -> StoreError:
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code in _SQLITE_FOR_NOW:
        return StoreUnavailable(f"{where}: {_SQLITE_FOR_NOW[code]} ({cause})")
    if isinstance(cause, OverflowError | sqlite3.DataError) and not code:
        return StoreError(f"{where}: {_SQLITE_FOR_GOOD[sqlite3.SQLITE_TOOBIG]} ({cause})")
    return StoreError(f"{where}: {_SQLITE_FOR_GOOD.get(code, 'the database refused')} ({cause})")


def _from_postgres(error: Exception, where: str) -> StoreError:
    cause = _cause(error)
    state = _sqlstate(cause)
    if for_now := _POSTGRES_FOR_NOW.get(state) or _POSTGRES_FOR_NOW.get(state[:2]):
        return StoreUnavailable(f"{where}: {for_now} ({cause})")
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return StoreUnavailable(f"{where}: {_POSTGRES_FOR_NOW['08']} ({cause})")
    return StoreError(f"{where}: {_POSTGRES_FOR_GOOD.get(state[:2], 'the database refused')} ({cause})")


def _cause(error: Exception) -> BaseException:
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def _sqlstate(cause: BaseException) -> str:
    return getattr(cause, "sqlstate", None) or ""
