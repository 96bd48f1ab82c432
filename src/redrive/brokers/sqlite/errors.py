"""The one place where SQLite's exceptions become ours."""

import sqlite3
from typing import Final

from redrive.core.errors import BrokerError, BrokerUnavailable

BUSY_SECONDS: Final = 10

_FOR_NOW: Final = {
    sqlite3.SQLITE_BUSY: f"another process has kept the file locked for {BUSY_SECONDS} s",
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
    sqlite3.SQLITE_CORRUPT: "the file is damaged; run `redrive doctor` and restore it from a copy",
    sqlite3.SQLITE_NOTADB: "this is not an SQLite file",
    sqlite3.SQLITE_TOOBIG: "something in it is larger than SQLite can keep",
}
_TOO_LARGE: Final = (OverflowError, sqlite3.DataError)
_SPOILT: Final = {
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}


def code_of(error: BaseException) -> int:
    """SQLite's primary code, or 0 for an exception that is not SQLite's."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def spoils_connection(error: BaseException) -> bool:
    """Whether the connection that raised this is better closed and opened again."""
    return code_of(error) in _SPOILT


def is_for_now(error: BaseException) -> bool:
    """Whether this is about the file and the moment, not about what was asked."""
    return code_of(error) in _FOR_NOW


def is_full(error: BaseException) -> bool:
    """Whether the disk or the file is full, said by SQLite or by us."""
    return sqlite3.SQLITE_FULL in {code_of(error), code_of(error.__cause__ or error)}


def translate(error: Exception, *, path: str) -> Exception:
    """The exception to raise instead: SQLite's become ours, every other one stays what it is."""
    code = code_of(error)
    if code in _FOR_NOW:
        ours: BrokerError = BrokerUnavailable(f"{path}: {_FOR_NOW[code]} ({error})")
    elif code in _FOR_GOOD:
        ours = BrokerError(f"{path}: {_FOR_GOOD[code]} ({error})")
    elif isinstance(error, _TOO_LARGE):
        ours = BrokerError(f"{path}: {_FOR_GOOD[sqlite3.SQLITE_TOOBIG]} ({error})")
    elif isinstance(error, UnicodeEncodeError):
        ours = BrokerError(f"{path}: expected text, got a lone surrogate ({error.reason})")
    elif isinstance(error, sqlite3.Error):
        ours = BrokerError(f"{path}: {error}")
    else:
        return error
    ours.__cause__ = error
    return ours
