"""From a URL to a letter store."""

from urllib.parse import urlsplit

from redrive.clock import SystemClock
from redrive.core.errors import ConfigError, LetterNotFound
from redrive.core.ports import Clock
from redrive.core.ports.store import Store
from redrive.core.url import mask_url
from redrive.wiring.files import sqlite_path


def open_store(url: str, *, clock: Clock | None = None) -> Store:
    """The letter store at a URL; nothing is opened until it is used. Raises `ConfigError`, `MissingExtra`."""
    scheme = urlsplit(url).scheme
    known = {"sqlite": _sqlite_store, "memory": _memory_store} | dict.fromkeys(POSTGRES_SCHEMES, _postgres_store)
    known |= dict.fromkeys(MONGODB_SCHEMES, _mongodb_store)
    if scheme not in known:
        raise ConfigError(f"store: expected a URL such as {_STORE_EXAMPLES}, got {mask_url(url)!r}")
    return known[scheme](url, clock or SystemClock())


def open_existing_store(url: str, *, clock: Clock | None = None) -> Store:
    """As `open_store`, for a look: a file that is not there is not begun. Raises `LetterNotFound` instead."""
    if urlsplit(url).scheme == "sqlite" and not (path := sqlite_path(url, what="store")).exists():
        raise LetterNotFound(f"no letter store at {path}; `redrive collect` begins one")
    return open_store(url, clock=clock)


POSTGRES_SCHEMES = ("postgresql", "postgres")
MONGODB_SCHEMES = ("mongodb", "mongodb+srv")

_STORE_EXAMPLES = (
    "sqlite:///letters.db (a file here), sqlite:////var/lib/letters.db (an absolute path),"
    " postgresql://user:password@host/database, mongodb://user:password@host/database or memory://"
)


def _sqlite_store(url: str, clock: Clock) -> Store:
    from redrive.stores.sql import SqlStore

    return SqlStore(sqlite_path(url, what="store"), clock=clock)


def _postgres_store(url: str, clock: Clock) -> Store:
    from redrive.stores.sql import SqlStore

    return SqlStore(url, clock=clock)


def _mongodb_store(url: str, clock: Clock) -> Store:
    from redrive.stores.mongo import MongoStore

    return MongoStore(url, clock=clock)


def _memory_store(_url: str, clock: Clock) -> Store:
    from redrive.stores.memory import MemoryStore

    return MemoryStore(clock=clock)
