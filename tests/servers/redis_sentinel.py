"""A Redis with one replica, and a sentinel that watches both."""

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.servers.redis import RedisServer
from tests.servers.server import until

PRIMARY: Final = "main"  # what the sentinel calls the primary, whichever of the two it is


class Sentinel(RedisServer):
    """The watcher; promotes a replica one and a half seconds after its primary fell silent.

    It connects to a server at most once a second: with less patience it takes the new primary for dead too.
    """

    def __init__(self, folder: Path, watched: RedisServer) -> None:
        self._watched = watched
        super().__init__(folder)

    def defaults(self) -> dict[str, str]:
        return {
            "bind": "127.0.0.1",
            "port": f"{self.port}",
            "dir": f"{self.folder}",
            f"sentinel monitor {PRIMARY}": f"127.0.0.1 {self._watched.port} 1",
            f"sentinel down-after-milliseconds {PRIMARY}": "1500",
            f"sentinel failover-timeout {PRIMARY}": "5000",
        }

    def command(self) -> list[str]:
        return [*super().command(), "--sentinel"]


class WatchedRedis:
    """Started and stopped as one; each may be struck. Raises `Unavailable`."""

    def __init__(self, folder: Path) -> None:
        first = RedisServer(folder / "first")
        second = RedisServer(folder / "second", {"replicaof": f"127.0.0.1 {first.port}"})
        self.servers = (first, second)
        self.sentinel = Sentinel(folder / "sentinel", first)
        self._running = ExitStack()

    @property
    def url(self) -> str:
        """Where a client finds it."""
        return f"redis+sentinel://127.0.0.1:{self.sentinel.port}/{PRIMARY}"

    @property
    def primary(self) -> RedisServer:
        """The one that the sentinel sends clients to."""
        answer = self.sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", PRIMARY)
        return next(server for server in self.servers if [*_words(answer)] == ["127.0.0.1", f"{server.port}"])

    def wait_for_promotion(self, replica: RedisServer) -> None:
        """Wait until a replica is the primary, by its own word and the sentinel's, and the failover is over."""
        healthy = f"status=ok,address=127.0.0.1:{replica.port},"
        until(lambda: healthy in self.sentinel.info("sentinel")["master0"], what="the sentinel names the replica")
        until(lambda: replica.info("replication")["role"] == "master", what="the replica promoted")

    def __enter__(self) -> Self:
        first, second = self.servers
        with ExitStack() as running:
            running.enter_context(first)
            running.enter_context(second)
            until(lambda: second.info("replication")["master_link_status"] == "up", what="the replica in step")
            running.enter_context(self.sentinel)
            until(lambda: self.sentinel.ask("SENTINEL", "REPLICAS", PRIMARY), what="the replica known to the sentinel")
            self._running = running.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()


def _words(answer: object) -> list[str]:
    return [str(word) for word in answer] if isinstance(answer, list) else []
