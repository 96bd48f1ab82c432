"""A RabbitMQ server."""

import asyncio
import hashlib
import os
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import aiormq

from tests.servers import roll
from tests.servers.install import Needed, on_path, require
from tests.servers.jumping_time import JumpingClock
from tests.servers.ports import free_port
from tests.servers.server import Server, dies_with_us, until

KEPT: Final = 3.0
"""Seconds after which a new queue is kept: of those killed within a second some were forgotten, later ones never."""
_KINDS: Final = ("quorum", "coordination")
_PLACES: Final = ("/usr/lib/rabbitmq/bin", "/usr/lib/rabbitmq/lib/*/sbin", "/opt/rabbitmq/sbin")


def _find() -> Path | None:
    """The script itself: the one on the path wants to be root or the user rabbitmq."""
    found = (path for place in _PLACES for path in Path("/").glob(f"{place[1:]}/rabbitmq-server"))
    return next(found, None)


RABBITMQ: Final = Needed("rabbitmq-server", _find, package="rabbitmq-server", advice="rabbitmq-server")
EPMD: Final = Needed("epmd", on_path("epmd"), package="erlang-base", advice="erlang-base")


class RabbitServer(Server):
    """One node, with a name, a folder and a port mapper of its own. Raises `Unavailable`.

    With a clock, the server's time jumps when that clock is advanced.
    """

    patience = 120.0  # a virtual machine on a machine with much to do

    def __init__(
        self, folder: Path, settings: Mapping[str, str] | None = None, *, clock: JumpingClock | None = None
    ) -> None:
        super().__init__(folder)
        self.port = free_port()
        self._distribution, self._mapper = free_port(), free_port()
        self._program, self._epmd = require(RABBITMQ), require(EPMD)
        self._clock = clock
        self._names: subprocess.Popen[bytes] | None = None
        self._node = f"redrive-{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}@localhost"
        given = {**self.defaults(), **(settings or {})}
        (folder / "rabbitmq.conf").write_text("".join(f"{name} = {value}\n" for name, value in given.items()))
        (folder / "enabled_plugins").write_text("[].\n")
        (folder / "env.conf").touch()

    @property
    def url(self) -> str:
        """Where a client finds it. A silence that jumps past is none."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/?heartbeat={3600 if self._clock else 20}"

    def defaults(self) -> dict[str, str]:
        """Settings that a test may override."""
        return {
            "log.console": "true",
            "log.console.level": "error",
            "log.file": "false",
            "loopback_users.guest": "true",
            "vm_memory_high_watermark.absolute": "2GB",
            "disk_free_limit.absolute": "10MB",
        }

    def command(self) -> Sequence[str]:
        return (str(self._program),)

    def environment(self) -> Mapping[str, str]:
        folder = str(self.folder)
        return {
            "HOME": folder,
            "RUNNING_UNDER_SYSTEMD": "1",  # no shell between us and the server: what we strike is the server itself
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": f"{self.port}",
            "RABBITMQ_DIST_PORT": f"{self._distribution}",
            "ERL_EPMD_PORT": f"{self._mapper}",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": f"{folder}/mnesia",
            "RABBITMQ_LOG_BASE": f"{folder}/logs",
            "RABBITMQ_PID_FILE": f"{folder}/pid",
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq.conf",
            "RABBITMQ_ADVANCED_CONFIG_FILE": f"{folder}/advanced.config",
            "RABBITMQ_CONF_ENV_FILE": f"{folder}/env.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/enabled_plugins",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none",
            **(self._clock.environment() if self._clock else {}),
        }

    def start(self) -> None:
        if self._names is None:
            self._names = subprocess.Popen(
                [*dies_with_us(), str(self._epmd), "-address", "127.0.0.1", "-port", f"{self._mapper}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        super().start()
        roll.used("rabbitmq-server", version(self.url))

    def __exit__(self, *trouble: object) -> None:
        self.kill()  # nothing of it is needed any more
        if self._names is not None:
            self._names.kill()
            self._names.wait()

    def control(self, *words: str) -> str:
        """What `rabbitmqctl` answers."""
        command = [str(self._program.with_name("rabbitmqctl")), "--node", self._node, *words]
        env = {**os.environ, **self.environment()}
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout

    def keeps_its_queues(self) -> None:
        """Wait until it would not forget a quorum queue or a stream if it were killed: it notes new ones with delay."""
        until(lambda: time.time() - self._last_begun() > KEPT, what="no queue is new", patience=self.patience)

    def _last_begun(self) -> float:
        data = self.folder / "mnesia" / self._node
        begun = [path.stat().st_ctime for kind in _KINDS for path in data.glob(f"{kind}/*/*") if path.is_dir()]
        return max(begun, default=0.0)

    def is_ready(self) -> bool:
        """Whether it lets clients in."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()  # a client complains at length
            version(self.url)
        except (OSError, aiormq.AMQPError):
            return False
        return True


def version(url: str) -> str:
    """What a server says that it is."""

    async def ask() -> str:
        async with asyncio.timeout(10):
            connection = await aiormq.connect(url)
            try:
                return str(connection.server_properties["version"])
            finally:
                await connection.close()

    with ThreadPoolExecutor(1) as thread:  # whoever asks may be in an event loop
        return thread.submit(asyncio.run, ask()).result()
