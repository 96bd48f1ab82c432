"""A PostgreSQL server, and empty databases in one."""

import asyncio
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import asyncpg

from tests.servers import roll
from tests.servers.install import Needed, Unavailable, require
from tests.servers.ports import free_port
from tests.servers.server import PATIENCE, Server, StartFailed, dies_with_us, until

_NUMBERS = count(1)
_STILL_THERE = "is still in use"  # processes of a server that was killed a moment ago


def _find() -> Path | None:
    """The server's program; Debian keeps those of every version in a folder that is on nobody's path."""
    if found := shutil.which("postgres"):
        return Path(found).resolve()
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    return versions[-1] if versions else None


POSTGRES: Final = Needed("postgres", _find, package="postgresql", advice="postgresql")


class PostgresServer(Server):
    """A PostgreSQL of our own, by an unprivileged user. Keeps what it has committed when it is killed.

    It has a folder of its own, not the test's: that one is closed to other users. Raises `Unavailable`.
    """

    def __init__(self) -> None:
        program = require(POSTGRES)
        super().__init__(Path(tempfile.mkdtemp(prefix="redrive-postgres-")))
        self.port = free_port()
        self._programs = program.parent
        self._data = self.folder / "data"
        if os.geteuid() == 0:
            for path in (self.folder, self.log):
                shutil.chown(path, somebody())
        self._create()

    @property
    def url(self) -> str:
        """Where its first database is."""
        return f"postgresql://redrive@127.0.0.1:{self.port}/postgres"

    def command(self) -> Sequence[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.folder,
            "fsync": "off",  # what a process has written outlives it; the machine is not at stake
            "full_page_writes": "off",
            "max_connections": 200,
        }
        given = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return (*as_somebody(), str(self._programs / "postgres"), "-D", str(self._data), *given)

    def start(self) -> None:
        until(self._has_started, what="the rest of a killed server gone")
        roll.used("postgres", ask(self.url, "SHOW server_version"))

    def stop(self) -> None:
        super().stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_ready(self) -> bool:
        """Whether it answers, and not somebody else's server at its port."""
        try:
            return bool(ask(self.url, "SHOW data_directory") == str(self._data))
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False

    def _has_started(self) -> bool:
        try:
            super().start()
        except StartFailed as failed:
            if _STILL_THERE not in str(failed):
                raise
            self.forget()
            return False
        return True

    def _create(self) -> None:
        words = ("-D", str(self._data), "-U", "redrive", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        made = subprocess.run(
            [*as_somebody(), str(self._programs / "initdb"), *words],
            check=False,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE * 4,
        )
        if made.returncode:
            raise StartFailed(made.stderr)


class Databases:
    """Databases that come and go in a server, ours or a given one whose user may create some."""

    def __init__(self, url: str) -> None:
        self._url = url

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """The URL of a database of one's own, in which nothing is. Takes a moment: see `empty`."""
        name = f"redrive_test_{os.getpid()}_{next(_NUMBERS)}"
        ask(self._url, f"CREATE DATABASE {name}")
        try:
            yield urlsplit(self._url)._replace(path=f"/{name}").geturl()
        finally:
            ask(self._url, f"DROP DATABASE {name} WITH (FORCE)")

    @cached_property
    def version(self) -> str:
        return str(ask(self._url, "SHOW server_version"))


def empty(url: str) -> None:
    """Take all rows out of the tables of a letter store: with few rows that is quicker than any other way."""
    ask(
        url,
        "DO $$ DECLARE name text; BEGIN"
        " FOR name IN SELECT tablename FROM pg_tables"
        "   WHERE schemaname = current_schema() AND tablename <> 'alembic_version'"
        " LOOP EXECUTE format('DELETE FROM %I', name); END LOOP; END $$",
    )


def ask(url: str, *statements: str) -> Any:
    """Run statements on a connection of its own, also where an event loop runs; the first value of the last answer."""

    async def run() -> Any:
        connection = await asyncpg.connect(url, timeout=PATIENCE)
        try:
            for statement in statements:
                answer = await connection.fetchval(statement)
            return answer
        finally:
            await connection.close()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, run()).result()


def as_somebody() -> Sequence[str]:
    """What to put before a command that refuses to be run by root."""
    if os.geteuid() != 0:
        return ()
    if not shutil.which("setpriv"):
        raise Unavailable("setpriv", "is not installed, and root may not start postgres; apt install util-linux")
    user = somebody()
    changed = ("setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups")
    return (*changed, *dies_with_us()[1:])  # whoever changes its user forgets when to die


def somebody() -> str:
    """A user without rights: the one of Debian's package, or nobody."""
    known = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"
