"""A Redis server."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.servers import roll
from tests.servers.certificate import Certificate
from tests.servers.frozen_time import FrozenClock
from tests.servers.install import Needed, Unavailable, on_path, require
from tests.servers.ports import free_port
from tests.servers.server import Server, StartFailed

# One program under several names. Debian has it under the second one in a package that starts no service.
REDIS: Final = Needed(
    "redis-server", on_path("redis-server", "redis-check-rdb"), package="redis-tools", advice="redis-server"
)


class RedisServer(Server):
    """A Redis that keeps nothing on disk unless its settings (as in redis.conf) say so.

    With a clock, the server's time stands still until that clock is advanced. Raises `Unavailable`.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        *,
        clock: FrozenClock | None = None,
        certificate: Certificate | None = None,
    ) -> None:
        super().__init__(folder)
        self.port = free_port()
        self.certificate = certificate
        self._clock = clock
        self.settings = {**self.defaults(), **(settings or {})}
        self._program = folder / "redis-server"
        self._program.symlink_to(require(REDIS))
        self._configuration = folder / "redis.conf"  # a cluster's node and a sentinel write to theirs
        self._configuration.write_text("".join(f"{name} {value}\n" for name, value in self.settings.items()))

    @property
    def url(self) -> str:
        """Where a client finds it."""
        password = self.settings.get("requirepass")
        place = f"{f':{password}@' if password else ''}127.0.0.1:{self.port}"
        if self.certificate:
            return f"rediss://{place}?ssl_ca_certs={self.certificate.certificate}"
        return f"redis://{place}"

    def defaults(self) -> dict[str, str]:
        """Settings that a test may override."""
        settings = {
            "bind": "127.0.0.1",
            "port": f"{self.port}",
            "dir": f"{self.folder}",
            "save": '""',
            "repl-diskless-sync-delay": "0",
        }
        if self._clock:
            settings["hz"] = "100"  # looks that often in a second whether a time has come
        if self.certificate:
            settings |= {
                "port": "0",
                "tls-port": f"{self.port}",
                "tls-cert-file": f"{self.certificate.certificate}",
                "tls-key-file": f"{self.certificate.key}",
                "tls-auth-clients": "no",
            }
        return settings

    def command(self) -> Sequence[str]:
        return (str(self._program), str(self._configuration))

    def environment(self) -> Mapping[str, str]:
        return self._clock.environment() if self._clock else {}

    def start(self) -> None:
        try:
            super().start()
        except StartFailed as failed:
            if "libfaketime: " in str(failed):
                raise Unavailable("libfaketime", f"does not get along with this redis-server: {failed}") from failed
            raise
        roll.used("redis-server", self.info("server")["redis_version"])

    def is_ready(self) -> bool:
        """Whether it answers, and not somebody else's server at its port: that one is not ours to flush."""
        try:
            return self.ask("PING") == "PONG" and self.is_process(self.info("server")["process_id"])
        except (redis.ConnectionError, redis.TimeoutError):  # BusyLoadingError is one of the first
            return False

    def ask(self, *words: str | int) -> object:
        """Send one command and return the answer."""
        return ask(self.url, *words)

    def info(self, section: str) -> dict[str, str]:
        """A section of INFO."""
        return facts(self.ask("INFO", section))

    def flush(self) -> None:
        """Forget everything: ours to do, since we started it."""
        self.ask("FLUSHALL")


def ask(url: str, *words: str | int) -> object:
    """Send one command on a connection of its own and return the answer. Raises `redis.RedisError`."""
    once = Retry(NoBackoff(), 0)
    with redis.Redis.from_url(url, decode_responses=True, protocol=2, socket_timeout=5, retry=once) as client:
        client.response_callbacks.clear()
        return client.execute_command(*words)


def facts(answer: object) -> dict[str, str]:
    """The `name:value` lines of an answer."""
    return dict(line.split(":", 1) for line in str(answer).splitlines() if ":" in line)
