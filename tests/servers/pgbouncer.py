"""A PgBouncer: many clients take turns on few connections, one transaction each."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import asyncpg

from tests.servers import roll
from tests.servers.install import Needed, on_path, require
from tests.servers.ports import free_port
from tests.servers.postgres import as_somebody, ask, somebody
from tests.servers.server import Server

PGBOUNCER: Final = Needed("pgbouncer", on_path("pgbouncer", "/usr/sbin/pgbouncer"), "pgbouncer", advice="pgbouncer")


class PgBouncer(Server):
    """A pooler before the server of a database, by transactions, with two connections for all. Raises `Unavailable`."""

    def __init__(self, url: str) -> None:
        program = require(PGBOUNCER)
        super().__init__(Path(tempfile.mkdtemp(prefix="redrive-pgbouncer-")))
        self.port = free_port()
        self._program = program
        self._to = urlsplit(url)
        self._settings = self.folder / "pgbouncer.ini"
        self._settings.write_text(self._as_text())
        if os.geteuid() == 0:
            for path in (self.folder, self.log, self._settings):
                shutil.chown(path, somebody())

    @property
    def url(self) -> str:
        """The same database, by way of the pooler."""
        return self._to._replace(netloc=f"{self._to.username}@127.0.0.1:{self.port}").geturl()

    def command(self) -> Sequence[str]:
        return (*as_somebody(), str(self._program), str(self._settings))

    def start(self) -> None:
        super().start()
        said = subprocess.run([self._program, "--version"], check=True, capture_output=True, text=True)
        roll.used("pgbouncer", said.stdout.split()[1])

    def stop(self) -> None:
        super().stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_ready(self) -> bool:
        try:
            return bool(ask(self.url, "SELECT current_database()") == self._to.path.removeprefix("/"))
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False

    def _as_text(self) -> str:
        return (
            "[databases]\n"
            f"* = host={self._to.hostname} port={self._to.port} user={self._to.username}\n"
            "[pgbouncer]\n"
            "listen_addr = 127.0.0.1\n"
            f"listen_port = {self.port}\n"
            "unix_socket_dir =\n"
            "auth_type = any\n"
            "pool_mode = transaction\n"
            "default_pool_size = 2\n"
            "max_client_conn = 100\n"
        )
