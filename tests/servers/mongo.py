"""A server that speaks MongoDB's protocol, and empty databases in one.

MongoDB itself is in no package repository. FerretDB is: as a Go module, which is built once and kept beside the other
temporary files. It keeps its data in a PostgreSQL, and has no transactions. The same tests run on a MongoDB that is
named in the environment.
"""

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from tests.servers import roll
from tests.servers.install import Needed, Unavailable, on_path, require
from tests.servers.ports import free_port
from tests.servers.server import Server

MODULE = "github.com/FerretDB/FerretDB"
VERSION = "v1.24.2"
PATIENCE = 1200  # seconds to build it on a slow machine

GO = Needed("go", on_path("go"), package="golang-go", advice="golang-go")

_NUMBERS = count(1)


@cache
def ferretdb() -> Path:
    """Where its program is, built if it is not installed. Raises `Unavailable`."""
    if found := on_path("ferretdb")():
        return found
    built = Path(tempfile.gettempdir()) / f"redrive-ferretdb-{os.geteuid()}" / VERSION / "ferretdb"
    if not built.exists():
        go = require(GO)
        built.parent.mkdir(parents=True, exist_ok=True)
        with built.with_suffix(".lock").open("w") as lock:  # takes minutes: nobody else should build it too
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not built.exists():
                _build(go, built)
    return built


def _build(go: Path, built: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="redrive-ferretdb-") as name:
        folder = Path(name)
        said = _run(str(go), "mod", "download", "-json", f"{MODULE}@{VERSION}", at=folder)
        source = shutil.copytree(json.loads(said)["Dir"], folder / "source")
        _run("chmod", "--recursive", "u+w", str(source), at=folder)  # modules are kept read-only
        (source / "build" / "version" / "version.txt").write_text(f"{VERSION}\n")  # without, it does not start
        _run(str(go), "build", "-o", str(built.with_suffix(".new")), "./cmd/ferretdb", at=source)
        built.with_suffix(".new").rename(built)


def _run(*command: str, at: Path) -> str:
    try:
        done = subprocess.run(command, cwd=at, check=True, capture_output=True, text=True, timeout=PATIENCE)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failed:
        words = (str(failed.stderr or "").strip().splitlines() or [str(failed)])[-1]
        raise Unavailable("ferretdb", f"is not installed and could not be built: {words}") from failed
    return done.stdout


class MongoServer(Server):
    """A FerretDB of our own, over a PostgreSQL. Keeps what it has acknowledged when it is killed.

    Raises `Unavailable`.
    """

    def __init__(self, folder: Path, *, postgres: str) -> None:
        self._program = ferretdb()
        super().__init__(folder)
        self.port = free_port()
        self._postgres = urlsplit(postgres)._replace(scheme="postgres").geturl()

    @property
    def url(self) -> str:
        """Where a client finds it."""
        return f"mongodb://127.0.0.1:{self.port}"

    def command(self) -> Sequence[str]:
        settings = {
            "listen-addr": f"127.0.0.1:{self.port}",
            "handler": "postgresql",
            "postgresql-url": self._postgres,
            "state-dir": f"{self.folder}",
            "debug-addr": "-",
            "telemetry": "disable",
            "log-level": "error",
        }
        return (str(self._program), *(f"--{name}={value}" for name, value in settings.items()))

    def start(self) -> None:
        super().start()
        roll.used("ferretdb", VERSION)

    def is_ready(self) -> bool:
        return version_of(self.url) is not None


class MongoDatabases:
    """Databases that come and go in a server, ours or a given one."""

    def __init__(self, url: str) -> None:
        self._url = url

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """The URL of a database of one's own, in which nothing is."""
        name = f"redrive_test_{os.getpid()}_{next(_NUMBERS)}"
        try:
            yield urlsplit(self._url)._replace(path=f"/{name}").geturl()
        finally:
            with client(self._url) as connected:
                connected.drop_database(name)

    @cached_property
    def version(self) -> str:
        return version_of(self._url) or "unknown"


def empty(url: str) -> None:
    """Take everything out of the collections of a letter store, but for the indexes."""
    with client(url) as connected:
        database = connected.get_default_database()
        for name in database.list_collection_names():
            if not name.endswith(".head"):
                database[name].delete_many({})


def version_of(url: str) -> str | None:
    """What a server says that it is; None if it does not answer."""
    try:
        with client(url) as connected:
            return str(connected.server_info()["version"])
    except PyMongoError:
        return None


@contextmanager
def client(url: str) -> Iterator[MongoClient[dict[str, object]]]:
    """A connection for the tests themselves."""
    connected: MongoClient[dict[str, object]] = MongoClient(url, serverSelectionTimeoutMS=1000, tz_aware=True)
    try:
        yield connected
    finally:
        connected.close()
