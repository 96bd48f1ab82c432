"""The stores that are measured: a file, and a PostgreSQL of our own."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from benchmarks.measure import Sample
from benchmarks.runs import Case, InFiles
from tests.servers.install import Unavailable
from tests.servers.postgres import Databases, PostgresServer, ask

NAMES = ("sqlite", "postgres")


class Place(Protocol):
    """Where a store with all letters is, and further ones for runs that each need an empty one.

    `letters` is what the store is opened with, `url` what the service is told; `server` is the database's process.
    """

    name: str
    version: str
    letters: str
    url: str
    server: int | None

    def settle(self) -> int:
        """Leave what was filled as the database leaves it in time; how many bytes it has."""

    def copy(self, case: Case) -> Sample:
        """Run a case that gets an empty place: `path`, and what else its programs want to know."""


@contextmanager
def places(names: Sequence[str], folder: Path) -> Iterator[list[Place]]:
    """Those with these names, until the end of the block. Raises `SystemExit` if there is no PostgreSQL to start."""
    found: list[Place] = [_InFile(folder)] if "sqlite" in names else []
    if "postgres" not in names:
        yield found
        return
    try:
        server = _Durable()
    except Unavailable as absence:
        raise SystemExit(f"{absence}; or leave it out with --stores sqlite") from absence
    with server, Databases(server.url).fresh() as url:
        yield [*found, _OnServer(server, url, folder)]


class _Durable(PostgresServer):
    """With the settings it comes with: what is committed is on disk."""

    def command(self) -> Sequence[str]:
        return (*super().command(), "-c", "fsync=on", "-c", "full_page_writes=on")  # the last word counts


class _InFile:
    name = "SQLite"
    version = f"SQLite {sqlite3.sqlite_version}"
    server: int | None = None

    def __init__(self, folder: Path) -> None:
        self._path = folder / "letters.db"
        self.letters = str(self._path)
        self.url = f"sqlite:///{self._path}"
        self.copy = InFiles(folder)

    def settle(self) -> int:
        return self._path.stat().st_size


class _OnServer:
    name = "PostgreSQL"

    def __init__(self, server: PostgresServer, url: str, folder: Path) -> None:
        self._databases = Databases(server.url)
        self._files = InFiles(folder)
        self.letters = self.url = url
        self.server: int | None = server.pid
        self.version = f"PostgreSQL {self._databases.version.split()[0]}"

    def settle(self) -> int:
        return int(ask(self.url, "VACUUM (ANALYZE)", "SELECT pg_database_size(current_database())"))

    def copy(self, case: Case) -> Sample:
        with self._databases.fresh() as url:
            return self._files(replace(case, arguments={**case.arguments, "url": url, "server": self.server}))
