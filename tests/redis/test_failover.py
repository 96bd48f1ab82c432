"""A failover under load, by sentinel and in a cluster: what is lost, what is handled twice, and that work goes on."""

import asyncio
import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Self

import pytest
import redis

from redrive.brokers.redis import RedisBroker
from redrive.brokers.redis.address import Address, Durability
from redrive.brokers.redis.server import Server
from redrive.brokers.redis.transaction import confirm
from redrive.core.errors import BrokerUnavailable
from redrive.core.message import Message
from tests.redis.failover import CONFIRM_WITHIN, Account, Clustered, Load, Watched, fail_over
from tests.servers.ports import free_port
from tests.servers.redis import RedisServer
from tests.servers.redis_cluster import RedisCluster
from tests.servers.redis_sentinel import PRIMARY, WatchedRedis
from tests.servers.server import until

Connect = Callable[[str], RedisBroker]

MOST_FAULTS = 100  # of two workers with three kinds of calls, in an outage of some seconds; a hot loop has thousands
GONE = "the consumer group was gone"


def _collect() -> None:
    """Collect what a failover left open: when a server is replaced, redis-py drops connections without closing them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(autouse=True, scope="module")
def collected_at_the_end() -> Iterator[None]:
    yield
    _collect()


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    yield
    _collect()


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedRedis]:
    with WatchedRedis(tmp_path_factory.mktemp("watched")) as watched:
        yield watched


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    with RedisCluster(tmp_path_factory.mktemp("cluster"), replicated=True) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redrive.brokers.redis.transaction.CONFIRM_WITHIN", CONFIRM_WITHIN)


def check(account: Account) -> None:
    """What holds after every failover, whatever was waited for."""
    print(account.row())
    assert account.phantoms == set()
    assert account.innocents == set()
    assert account.dead_twice == 0
    assert 0 < len(account.faults) < MOST_FAULTS
    assert not any(GONE in fault.why for fault in account.faults)


@pytest.mark.parametrize("stalled", [False, True], ids=["killed", "replica-cut-off"])
async def test_what_a_replica_confirmed_survives_its_primary(watched: WatchedRedis, *, stalled: bool) -> None:
    account = await fail_over(Watched(watched), durability="wait:1", stalled=stalled, seed=1)

    check(account)
    assert account.lost == set()


async def test_what_nobody_waited_for_is_lost_with_its_primary_and_nothing_else(watched: WatchedRedis) -> None:
    account = await fail_over(Watched(watched), durability="local", stalled=True, seed=1)

    check(account)
    assert len(account.acknowledged - account.lost) >= 400  # before the replica was cut off, and after the failover


@pytest.mark.parametrize("durability", ["local", "wait:1"])
async def test_workers_follow_their_queue_through_a_cluster(cluster: RedisCluster, durability: str) -> None:
    account = await fail_over(Clustered(cluster), durability=durability, stalled=False, seed=1)

    check(account)
    if durability != "local":
        assert account.lost == set()


async def test_a_group_that_the_new_primary_never_heard_of_is_made_again_and_told(watched: WatchedRedis) -> None:
    servers = Watched(watched)
    primary, replica = servers.pair("orders")
    replica.ask("REPLICAOF", "127.0.0.1", free_port())
    async with Load(watched.url, queue="orders-forgotten", seed=1) as load:
        await load.more(50)
        primary.kill()
        await asyncio.to_thread(servers.wait_for_promotion, replica)
        primary.start()
        await asyncio.to_thread(servers.bring_back, primary, replica)
        before = set(load.account.acknowledged)
        await load.more(50)
        await load.drain()

    assert any(GONE in fault.why for fault in load.account.faults)
    assert len(load.account.faults) < MOST_FAULTS
    assert load.account.lost <= before
    assert load.account.innocents == set()


async def test_a_rolling_restart_loses_nothing(cluster: RedisCluster) -> None:
    """Each primary hands over to its replica first. Waits that this ends are no sign of a lost group."""
    servers = Clustered(cluster)
    async with Load(f"{cluster.url}?durability=wait:1", queue="orders-rolling", seed=1) as load:
        await load.more(50)
        for number in range(3):
            pair = cluster.primaries[number], cluster.replicas[number]
            primary, replica = pair if pair[0].info("replication")["role"] == "master" else pair[::-1]
            replica.ask("CLUSTER", "FAILOVER")
            await asyncio.to_thread(servers.wait_for_promotion, replica)
            primary.restart()
            await asyncio.to_thread(servers.bring_back, primary, replica)
        await load.more(50)
        await load.drain()

    check(load.account)
    assert load.account.lost == set()


async def test_a_queue_that_moves_to_another_server_is_away_until_it_has(
    cluster: RedisCluster, connect: Connect
) -> None:
    queue, one = "orders-moving", [Message("", "orders-moving", b"1")]
    asked, told = connect(cluster.url), connect(cluster.url)
    for broker in (asked, told):
        await broker.publish(queue, one)
    slot = int(str(cluster.primaries[0].ask("CLUSTER", "KEYSLOT", queue)))
    source, _ = Clustered(cluster).pair(queue)
    primaries = [node for node in cluster.nodes if node.info("replication")["role"] == "master"]
    target = next(node for node in primaries if node is not source)
    ids = {node: str(node.ask("CLUSTER", "MYID")) for node in (source, target)}
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
    source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys_in(source, slot))
    with pytest.raises(BrokerUnavailable, match="the cluster is moving this queue"):
        await asked.publish(queue, one)
    for node in (target, *(node for node in primaries if node is not target)):
        node.ask("CLUSTER", "SETSLOT", slot, "NODE", ids[target])
    until(lambda: all(owner(node, slot) == target.port for node in cluster.nodes), what="the move known to all")
    with pytest.raises(BrokerUnavailable, match="the cluster has moved this queue"):
        await told.publish(queue, one)
    for broker in (asked, told):
        await broker.publish(queue, one)

    assert target.ask("XLEN", queue) == 4


def keys_in(node: RedisServer, slot: int) -> list[str]:
    answer = node.ask("CLUSTER", "GETKEYSINSLOT", slot, 100)
    assert isinstance(answer, list)
    return answer


def owner(node: RedisServer, slot: int) -> int:
    """The port of the primary that has a slot, as this node sees it."""
    answer = node.ask("CLUSTER", "SLOTS")
    assert isinstance(answer, list)
    return next(int(primary[1]) for start, end, primary, *_ in answer if start <= slot <= end)


async def test_a_primary_that_has_lost_its_replicas_is_asked_for_anew(watched: WatchedRedis, connect: Connect) -> None:
    """It is replaced, and has not heard of it yet: what it took would be lost."""
    servers = Watched(watched)
    primary, replica = servers.pair("orders")
    broker = connect(watched.url)
    one = [Message("", "orders-replaced", b"1")]
    await broker.publish("orders-replaced", one)
    primary.ask("CONFIG", "SET", "min-replicas-to-write", 1)
    try:
        await asyncio.to_thread(until, lambda: hands_over(watched), what="the sentinel ready for a failover")
        await asyncio.to_thread(servers.wait_for_promotion, replica)
        with pytest.raises(BrokerUnavailable, match="fewer replicas"):
            await broker.publish("orders-replaced", one)
        await broker.publish("orders-replaced", one)
    finally:
        primary.ask("CONFIG", "SET", "min-replicas-to-write", 0)

    assert replica.ask("XLEN", "orders-replaced") == 2


def hands_over(watched: WatchedRedis) -> bool:
    """Ask for a failover; whether the sentinel knows the replica well enough for it."""
    try:
        return watched.sentinel.ask("SENTINEL", "FAILOVER", PRIMARY) == "OK"
    except redis.ResponseError:
        return False


async def test_what_was_not_confirmed_is_confirmed_by_no_other_connection(watched: WatchedRedis) -> None:
    """A server counts the replicas that have what was written by the connection that asks: a new one wrote nothing."""
    servers = Watched(watched)
    primary, replica = servers.pair("orders")
    await asyncio.to_thread(servers.bring_back, replica, primary)
    server = Server(Address.of(watched.url))
    replica.pause()
    try:
        async with server.wire("orders") as wire:
            await wire.call("SET", "orders-written", "1")
            await server.aclose()
            with pytest.raises(BrokerUnavailable, match="closed meanwhile"):
                await confirm(wire, Durability(1))
        async with server.wire("orders") as wire:
            await wire.call("SET", "orders-written", "2")
            asker = await wire.client_id()
            with pytest.raises(BrokerUnavailable, match="confirmed by 0 of 1"):
                await confirm(wire, Durability(1))
            assert await wire.client_id() != asker
    finally:
        replica.resume()
        await server.aclose()


class OtherSentinel:
    """Says the same whenever it is asked for primaries, and counts those who come. Without an answer it hangs up."""

    def __init__(self, answer: bytes = b"") -> None:
        self.port = free_port()
        self.visits = 0
        self._answer = answer

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._meet, "127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.visits += 1
        while self._answer and (asked := await reader.read(1024)):
            writer.write(b"+OK\r\n" * asked.count(b"SETINFO"))
            writer.write(self._answer if b"MASTERS" in asked else b"")
        writer.close()


async def test_a_sentinel_that_does_not_answer_is_asked_once_and_passed_over(
    watched: WatchedRedis, connect: Connect
) -> None:
    async with OtherSentinel() as other:
        broker = connect(watched.url.replace("://", f"://127.0.0.1:{other.port},"))
        await broker.publish("orders", [Message("", "orders", b"1")])

    assert other.visits == 1


async def test_a_primary_is_not_named_while_its_failover_is_under_way(connect: Connect) -> None:
    """It may be back, and empty, before the failover is over."""
    facts = {"name": PRIMARY, "ip": "127.0.0.1", "port": "1", "flags": "master,failover_in_progress"}
    words = [word for fact in facts.items() for word in fact]
    answer = "".join([f"*1\r\n*{len(words)}\r\n", *(f"${len(word)}\r\n{word}\r\n" for word in words)])
    async with OtherSentinel(answer.encode()) as other:
        with pytest.raises(BrokerUnavailable, match="knows a healthy primary"):
            await connect(f"redis+sentinel://127.0.0.1:{other.port}/{PRIMARY}").publish(
                "orders", [Message("", "orders", b"1")]
            )


async def test_a_call_that_is_cancelled_while_it_asks_a_sentinel_ends(watched: WatchedRedis) -> None:
    """Wherever it is: whoever stops a worker waits for that."""
    for steps in range(60):
        server = Server(Address.of(watched.url))

        async def ask(server: Server = server) -> None:
            async with server.wire("orders") as wire:
                await wire.call("PING")

        asking = asyncio.create_task(ask())
        for _ in range(steps):
            await asyncio.sleep(0)
        if asking.done():
            break
        asking.cancel()
        await asyncio.wait([asking])
        await server.aclose()

        assert asking.cancelled(), f"after {steps} steps"
