"""Opening the file: settings on which the guarantees stand, and the tables if they are not there yet."""

import random
import sqlite3
import stat
import time
from contextlib import suppress
from pathlib import Path

from redrive.brokers.sqlite.errors import BUSY_SECONDS, code_of
from redrive.brokers.sqlite.schema import APPLICATION_ID, TABLES, UPGRADES, VERSION
from redrive.core.errors import ConfigError

OLDEST = (3, 35, 0)  # the first with RETURNING
BETWEEN_TRIES = (0.0005, 0.0025)  # seconds
KEPT_WAL_BYTES = 16 * 1024 * 1024


def connect(path: str) -> sqlite3.Connection:
    """A connection with our settings, to a file with our tables.

    Safe while many processes do the same with a file that does not exist yet. Raises `ConfigError` for a file that
    is not ours and sqlite3's exceptions for the rest.
    """
    if sqlite3.sqlite_version_info < OLDEST:
        raise ConfigError(f"expected SQLite {'.'.join(map(str, OLDEST))} or newer, got {sqlite3.sqlite_version}")
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        ours = _is_ours(connection, path=path)  # looked at first: a file that is not ours stays untouched
        if not ours:
            _keep_private(path)
        _configure(connection)
        if not ours:
            _create(connection, path=path)
    except BaseException:
        connection.close()
        raise
    return connection


def file_at(path: str) -> tuple[int, int] | None:
    """Device and number of the file to which a path leads now; None if there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def begin_writing(connection: sqlite3.Connection) -> None:
    """Wait for the write lock, as long as for any other, and take it.

    SQLite itself would wait longer and longer between two tries, up to 100 ms, and lose to whoever has just come.
    """
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        _insist(connection, "BEGIN IMMEDIATE")
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")


def _insist(connection: sqlite3.Connection, statement: str) -> None:
    """Try a statement again and again while the file is locked."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute(statement).fetchall()
        except sqlite3.OperationalError as error:
            if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(*BETWEEN_TRIES))  # noqa: S311 - only to be out of step
        else:
            return


def _keep_private(path: str) -> None:
    """A new file is not for everyone on this machine; SQLite gives its log the same permissions."""
    with suppress(OSError):
        Path(path).chmod(stat.S_IMODE(Path(path).stat().st_mode) & ~stat.S_IRWXO)


def _configure(connection: sqlite3.Connection) -> None:
    _insist(connection, "PRAGMA journal_mode = WAL")  # for a new file SQLite does not wait here, whatever it is told
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # macOS: without it a power cut may take what was committed
    connection.execute(f"PRAGMA journal_size_limit = {KEPT_WAL_BYTES}")


def _create(connection: sqlite3.Connection, *, path: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    if not _is_ours(connection, path=path):  # another process may have been quicker
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        steps = [step for older in sorted(UPGRADES) if older >= version for step in UPGRADES[older]]
        for statement in steps if version else TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _is_ours(connection: sqlite3.Connection, *, path: str) -> bool:
    # The tables first: if another process makes them meanwhile, the marks it sets with them are seen as well.
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application == APPLICATION_ID and version == VERSION:
        return True
    if application == APPLICATION_ID and version not in UPGRADES:
        raise ConfigError(f"{path}: expected a file of version {VERSION}, got version {version} of another Redrive")
    if tables and application != APPLICATION_ID:
        raise ConfigError(f"{path}: expected a file of Redrive's own, got one with other tables")
    return False
