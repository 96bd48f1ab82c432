"""A Redis cluster of three primaries, each with a replica if wanted."""

from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import redis

from tests.servers.frozen_time import FrozenClock
from tests.servers.ports import free_port
from tests.servers.redis import RedisServer, facts
from tests.servers.server import until

SLOTS: Final = (0, 5461, 10923, 16384)


class RedisCluster:
    """Started and stopped as one; its nodes may be struck one by one. Raises `Unavailable`."""

    def __init__(self, folder: Path, *, replicated: bool = False, clock: FrozenClock | None = None) -> None:
        self._folder = folder
        self._clock = clock
        self.primaries = [self._node(f"primary-{number}") for number in range(3)]
        self.replicas = [self._node(f"replica-{number}") for number in range(3)] if replicated else []
        self._running = ExitStack()

    @property
    def nodes(self) -> list[RedisServer]:
        return [*self.primaries, *self.replicas]

    @property
    def url(self) -> str:
        """Where a client finds it."""
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.primaries)

    def number_of(self, key: str) -> int:
        """Which of `primaries`, and with replicas which of `replicas`, has this key."""
        slot = int(str(self.primaries[0].ask("CLUSTER", "KEYSLOT", key)))
        return next(number for number, (_, end) in enumerate(pairwise(SLOTS)) if slot < end)

    def wait_for_promotion(self, replica: RedisServer) -> None:
        """Wait until a replica has taken the place of its primary and every node that answers knows it."""
        until(lambda: replica.info("replication")["role"] == "master", what="a replica promoted")
        until(lambda: all(map(_is_well, filter(RedisServer.is_ready, self.nodes))), what="the cluster well again")

    def flush(self) -> None:
        for node in self.primaries:
            node.flush()

    def __enter__(self) -> Self:
        with ExitStack() as running:
            for node in self.nodes:
                running.enter_context(node)
            self._join()
            self._running = running.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def _node(self, name: str) -> RedisServer:
        settings = {
            "cluster-enabled": "yes",
            "cluster-port": f"{free_port()}",
            "cluster-node-timeout": "86400000" if self._clock else "1000",  # a jump must not look like silence
            "cluster-replica-validity-factor": "0",  # however long a replica was alone, it may be promoted
        }
        return RedisServer(self._folder / name, settings, clock=self._clock)

    def _join(self) -> None:
        first = self.primaries[0]
        for number, (start, end) in enumerate(pairwise(SLOTS)):
            self.primaries[number].ask("CLUSTER", "ADDSLOTSRANGE", start, end - 1)
        for number, node in enumerate(self.nodes, 1):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number)
            node.ask("CLUSTER", "MEET", "127.0.0.1", first.port, first.settings["cluster-port"])
        until(lambda: all(map(self._knows_all, self.nodes)), what="every node known to every node")
        for primary, replica in zip(self.primaries, self.replicas, strict=False):
            replica.ask("CLUSTER", "REPLICATE", str(primary.ask("CLUSTER", "MYID")))
        until(lambda: all(map(_follows, self.replicas)), what="every replica in step with its primary")
        until(self._is_well_in_time, what="the cluster well")

    def _is_well_in_time(self) -> bool:
        """A cluster takes its time before it accepts writes, and on a frozen clock none passes by itself."""
        if self._clock:
            self._clock.advance(1)
        return all(map(_is_well, self.nodes))

    def _knows_all(self, node: RedisServer) -> bool:
        known = str(node.ask("CLUSTER", "NODES"))
        return len(known.splitlines()) == len(self.nodes) and "handshake" not in known


def _is_well(node: RedisServer) -> bool:
    return facts(node.ask("CLUSTER", "INFO"))["cluster_state"] == "ok"


def _follows(replica: RedisServer) -> bool:
    try:
        return replica.info("replication").get("master_link_status") == "up"
    except redis.ConnectionError:  # it is loading
        return False
