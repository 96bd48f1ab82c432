"""The one place where the driver's exceptions become ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bson.errors import InvalidDocument
from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    ConnectionFailure,
    DocumentTooLarge,
    OperationFailure,
    PyMongoError,
)

from redrive.core.errors import ConfigError, StoreError, StoreUnavailable

_FOR_NOW: Final = {
    11: "the server does not know this user",
    13: "this user may not do that",
    18: "the server does not let this user in",
    50: "the server took too long",
    64: "too few members of the replica set have it on their disks",
    91: "the server is going down",
    189: "the server is no longer the primary",
    262: "the server took too long",
    8000: "the server refuses this user",
    10107: "the server is not the primary",
    11600: "the server is going down",
    11602: "the server was told to stop this",
    13388: "the cluster is being rearranged",
    13435: "the server is not the primary",
    13436: "the server is not the primary, or not yet",
    14031: "the server's disk is full",
}


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Raise `StoreUnavailable` or `StoreError` instead of what the driver raises; everything else stays what it is."""
    try:
        yield
    except (PyMongoError, OSError) as error:
        raise _ours(error, where) from error
    except StoreUnavailable as error:
        raise StoreUnavailable(f"{where}: {error}") from error


def _ours(error: Exception, where: str) -> Exception:
    if isinstance(error, ConfigurationError):
        return ConfigError(f"store: {error}, in {where}")
    if isinstance(error, InvalidDocument | DocumentTooLarge):
        return StoreError(f"{where}: the letter is larger than MongoDB can keep, or holds what it cannot ({error})")
    if isinstance(error, ConnectionFailure | OSError):
        return StoreUnavailable(f"{where}: the server does not answer ({_words(error)})")
    code = error.code if isinstance(error, OperationFailure) else None
    if isinstance(error, BulkWriteError):
        told = [*error.details.get("writeConcernErrors", ()), *error.details.get("writeErrors", ())]
        code = told[0].get("code") if told else None
    if isinstance(error, OperationFailure) and code in _FOR_NOW:
        return StoreUnavailable(f"{where}: {_FOR_NOW[code]} ({_words(error)})")
    return StoreError(f"{where}: the database refused ({_words(error)})")


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
