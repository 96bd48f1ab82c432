"""The server behind a URL: one, the primary that sentinels name, or a cluster. Connections of each event loop."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

from redis import exceptions as redis
from redis.asyncio import ConnectionPool, RedisCluster, Sentinel
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection, Connection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import MasterNotFoundError
from redis.backoff import NoBackoff

from redrive.brokers.redis.address import Address
from redrive.brokers.redis.traits import LARGEST_FIELD, Traits, look
from redrive.brokers.redis.wire import Source, Wire
from redrive.core.errors import BrokerUnavailable, ConfigError

_DEFAULTS: Final[dict[str, Any]] = {
    "protocol": 2,  # plain lists: what is wanted, and what every server speaks
    "socket_connect_timeout": 5,
    "socket_timeout": None,  # each call has a limit of its own
    "socket_keepalive": True,
    "socket_read_size": 1 << 20,  # a fetch brings some hundred kilobytes
    "health_check_interval": 0,
    "max_connections": 10_000,  # how many there may be is for the server to say
}


AT_ONCE: Final = 16
"""Connections that publishing may use at once: more of them are not faster, and each takes a while to make."""
ANSWER_WITHIN: Final = 2.0
"""Seconds after which another sentinel is asked."""
_SENTINEL: Final = "sentinel_"
"""In front of an option for the connections to the sentinels themselves."""


class Server:
    """Gives out wires. Connections are made when they are needed, for each event loop its own.

    Those of the first loop are kept for the next call. Another one is a thread's, and may end without a word: nothing
    of it is kept open when nobody uses it.
    """

    def __init__(self, address: Address) -> None:
        try:
            _source(address).check()
        except (TypeError, ValueError) as error:
            raise ConfigError(f"broker: not a URL that the client understands: {error}") from error
        self.address = address
        self._traits: Traits | None = None
        self._sources: dict[asyncio.AbstractEventLoop, _ClosableSource] = {}
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._home: asyncio.AbstractEventLoop | None = None
        self._visits: Counter[asyncio.AbstractEventLoop] = Counter()

    @asynccontextmanager
    async def wire(self, key: str) -> AsyncIterator[Wire]:
        """A wire to the server that has this key, until the block ends. Raises if the server is not one for us."""
        wire = self.open_wire(key)
        loop = asyncio.get_running_loop()
        self._visits[loop] += 1
        try:
            if self._traits is None:
                self._traits = await look(wire)
            yield wire
        finally:
            try:
                await wire.aclose()
            finally:
                self._visits[loop] -= 1
                if not self._visits[loop]:
                    del self._visits[loop]
                    if loop is not self._home:
                        await self.aclose()

    @asynccontextmanager
    async def shared_wire(self, key: str) -> AsyncIterator[Wire]:
        """As `wire`, for calls of which there may be thousands at once: they take turns. Never inside another one."""
        loop = asyncio.get_running_loop()
        turns = self._turns.get(loop)
        if turns is None:
            turns = self._turns[loop] = asyncio.Semaphore(AT_ONCE)
        async with turns, self.wire(key) as wire:
            yield wire

    def open_wire(self, key: str) -> Wire:
        """A wire to the server that has this key, to be closed by the caller."""
        loop = asyncio.get_running_loop()
        if self._home is None or self._home.is_closed():
            self._home = loop
        found = self._sources.get(loop)
        if found is None:
            for gone in [other for other in self._sources if other.is_closed()]:
                del self._sources[gone]
            found = self._sources[loop] = _source(self.address)
        return Wire(found, key)

    @property
    def largest(self) -> int:
        """How many bytes a field may have on its way to the server."""
        return LARGEST_FIELD if self._traits is None else self._traits.largest

    async def aclose(self) -> None:
        """Close the connections of this event loop. Idempotent."""
        source = self._sources.pop(asyncio.get_running_loop(), None)
        if source is not None:
            await source.aclose()


class _ClosableSource(Source, Protocol):
    def check(self) -> None:
        """Raise `TypeError` or `ValueError` if no connection could be made with these options."""
        ...

    async def aclose(self) -> None: ...


def _source(address: Address) -> _ClosableSource:
    # Never a blind second send: a call that was cut off may have been carried out.
    options = {**_DEFAULTS, **address.options, "retry": Retry(NoBackoff(), 0)}
    if address.scheme == "redis+cluster":
        return _ClusterSource(address, options)
    if address.scheme == "redis+sentinel":
        return _SentinelSource(address, options)
    if address.scheme == "unix":
        options.pop("socket_keepalive")
    return _PoolSource(ConnectionPool.from_url(address.url, **options))


class _PoolSource:
    """Connections to one server."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._closed = False

    def check(self) -> None:
        self._pool.make_connection()  # type: ignore[no-untyped-call]

    async def take(self, _key: str) -> AbstractConnection:
        connection: AbstractConnection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
        return connection

    async def give_back(self, connection: AbstractConnection) -> None:
        if self._closed:  # nobody comes for it any more
            await connection.disconnect(nowait=True)
        await self._pool.release(connection)

    async def aclose(self) -> None:
        self._closed = True
        await self._pool.aclose()


class _Sentinel(Sentinel):
    """Asks one sentinel after another, each for a limited time.

    The client's own limit (`socket_timeout`) is not used: up to Python 3.11 it may swallow a cancel, and whoever waits
    for the end of a task that was cancelled would wait for ever.
    """

    within: float

    async def discover_master(self, service_name: str) -> tuple[str, int]:
        for sentinel in self.sentinels:
            with contextlib.suppress(redis.ConnectionError, redis.TimeoutError, TimeoutError):
                async with asyncio.timeout(self.within):
                    known: Any = await sentinel.sentinel_masters()
                state = known.get(service_name)
                if state is not None and _is_healthy(state):
                    self.sentinels = [sentinel, *(other for other in self.sentinels if other is not sentinel)]
                    return state["ip"], state["port"]
        raise MasterNotFoundError(f"No master found for {service_name!r}")


def _is_healthy(state: dict[str, Any]) -> bool:
    """Whether a primary may be talked to. Not during a failover: the old one, back too early, would still be named."""
    return not any(flag in state["flags"] for flag in ("s_down", "o_down", "failover_in_progress"))


class _SentinelSource(_PoolSource):
    """Connections to whichever server the sentinels name when a connection is made."""

    def __init__(self, address: Address, options: dict[str, Any]) -> None:
        # A sentinel that does not answer is passed over: the others know as much as it does.
        own: dict[str, Any] = {"retry": options["retry"], "protocol": options["protocol"]}
        for name in [name for name in options if name.startswith(_SENTINEL)]:
            own[name.removeprefix(_SENTINEL)] = options.pop(name)
        within = own.pop("socket_timeout", ANSWER_WITHIN)
        hosts = list(address.hosts)
        self._sentinel = _Sentinel(hosts, sentinel_kwargs={**own, "socket_timeout": None}, **options)  # type: ignore[no-untyped-call]
        self._sentinel.within = within
        super().__init__(self._sentinel.master_for(address.primary).connection_pool)

    async def aclose(self) -> None:
        try:
            await super().aclose()
        finally:
            await self._sentinel.aclose()


class _ClusterSource:
    """Connections to the servers of a cluster; which of them has a key is asked again after each fault."""

    def __init__(self, address: Address, options: dict[str, Any]) -> None:
        nodes = [ClusterNode(host, port) for host, port in address.hosts]
        self._cluster = RedisCluster(startup_nodes=nodes, **options)
        self._owners: dict[AbstractConnection, tuple[ClusterNode, Connection]] = {}
        self._stale = False
        self._closed = False

    def check(self) -> None:
        """The client has looked at its options already."""

    async def take(self, key: str) -> AbstractConnection:
        await self._cluster.initialize()
        if self._stale:
            await self._cluster.nodes_manager.initialize()
            self._stale = False
        node = self._cluster.get_node_from_key(key)
        if node is None:
            self._stale = True
            raise BrokerUnavailable(f"redis: no server of the cluster has the slot of {key!r}")
        connection = node.acquire_connection()
        self._owners[connection] = node, connection
        return connection

    async def give_back(self, connection: AbstractConnection) -> None:
        self._stale = self._stale or not connection.is_connected
        if self._closed:
            await connection.disconnect(nowait=True)
        node, taken = self._owners.pop(connection)
        node.release(taken)

    async def aclose(self) -> None:
        self._closed = True
        await self._cluster.aclose()
