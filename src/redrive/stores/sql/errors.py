"""The one place where the database's exceptions become ours."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from redrive.core.errors import StoreError, StoreUnavailable

_FOR_NOW: Final = {
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
_FOR_GOOD: Final = {
    sqlite3.SQLITE_CORRUPT: "the file is damaged; restore it from a copy",
    sqlite3.SQLITE_NOTADB: "this is not an SQLite file",
    sqlite3.SQLITE_TOOBIG: "the letter is larger than SQLite can keep",
}


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Raise `StoreUnavailable` or `StoreError` instead of what the driver raises; everything else stays what it is."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OverflowError) as error:
        raise _ours(error, where) from error


def _ours(error: Exception, where: str) -> StoreError:
    cause: BaseException = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code in _FOR_NOW:
        return StoreUnavailable(f"{where}: {_FOR_NOW[code]} ({cause})")
    if isinstance(error, PoolTimeout):
        return StoreUnavailable(f"{where}: every connection is busy ({error})")
    if isinstance(cause, OverflowError | sqlite3.DataError) and not code:
        return StoreError(f"{where}: {_FOR_GOOD[sqlite3.SQLITE_TOOBIG]} ({cause})")
    return StoreError(f"{where}: {_FOR_GOOD.get(code, 'the database refused')} ({cause})")
