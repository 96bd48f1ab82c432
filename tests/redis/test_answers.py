"""What the server may say instead of doing it, heard from a real one."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex

import pytest

from redrive.brokers.redis import RedisBroker
from redrive.core.errors import BrokerError, BrokerUnavailable
from redrive.core.message import Message
from redrive.core.ports import Options
from tests.servers.redis import RedisServer
from tests.servers.server import until

Connect = Callable[[str], RedisBroker]

ONE = [Message("", "orders", b"1")]


async def publish_until_done(broker: RedisBroker, task: asyncio.Task[object]) -> None:
    while not task.done():
        await broker.publish("orders", ONE)


async def test_a_server_out_of_memory_refuses_all_of_a_batch(fresh_redis: RedisServer, connect: Connect) -> None:
    broker = connect(fresh_redis.url)
    await broker.publish("orders", ONE)
    fresh_redis.ask("CONFIG", "SET", "maxmemory", "1mb")
    with pytest.raises(BrokerUnavailable, match="maxmemory"):
        await broker.publish("orders", ONE * 3)
    fresh_redis.ask("CONFIG", "SET", "maxmemory", "0")

    assert fresh_redis.ask("XLEN", "orders") == 1


async def test_a_server_that_cannot_write_to_its_disk_refuses(tmp_path: Path, connect: Connect) -> None:
    folder = tmp_path / "redis"
    with RedisServer(folder, {"save": "3600 1", "enable-protected-configs": "local"}) as server:
        broker = connect(server.url)
        await broker.publish("orders", ONE)
        server.ask("CONFIG", "SET", "dir", "/proc")  # where nobody can write
        server.ask("BGSAVE")
        until(lambda: server.info("persistence")["rdb_last_bgsave_status"] == "err", what="a snapshot failed")
        with pytest.raises(BrokerUnavailable, match="cannot write to its disk"):
            await broker.publish("orders", ONE)
        server.ask("CONFIG", "SET", "dir", str(folder))
        server.ask("BGSAVE")
        until(lambda: server.info("persistence")["rdb_last_bgsave_status"] == "ok", what="a snapshot made")
        await broker.publish("orders", ONE)


async def test_a_server_that_became_a_replica_is_asked_for_anew(fresh_redis: RedisServer, connect: Connect) -> None:
    broker = connect(fresh_redis.url)
    await broker.publish("orders", ONE)
    fresh_redis.ask("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(BrokerUnavailable, match="its primary has changed"):
        await broker.publish("orders", ONE)
    fresh_redis.ask("REPLICAOF", "NO", "ONE")
    await broker.publish("orders", ONE)

    assert fresh_redis.ask("XLEN", "orders") == 2


async def test_too_few_replicas_are_no_reason_to_lose_anything(fresh_redis: RedisServer, connect: Connect) -> None:
    fresh_redis.ask("CONFIG", "SET", "min-replicas-to-write", "1")
    with pytest.raises(BrokerUnavailable, match="fewer replicas"):
        await connect(fresh_redis.url).publish("orders", ONE)

    assert fresh_redis.ask("EXISTS", "orders") == 0


async def test_a_server_that_still_reads_its_data_is_unavailable_until_it_has(tmp_path: Path, connect: Connect) -> None:
    settings = {
        "enable-debug-command": "local",
        "key-load-delay": "5000",
        "loading-process-events-interval-bytes": "1024",
    }
    with RedisServer(tmp_path / "redis", settings) as server:
        broker = connect(server.url)
        for number in range(200):  # it answers after each of them
            server.ask("SET", f"key-{number}", token_hex(1024))
        reloading = asyncio.create_task(asyncio.to_thread(server.ask, "DEBUG", "RELOAD"))
        with pytest.raises(BrokerUnavailable, match="still reading its data"):
            await publish_until_done(broker, reloading)
        await reloading
        await broker.publish("orders", ONE)


async def test_a_password_that_is_missing_or_wrong_is_told_as_such(tmp_path: Path, connect: Connect) -> None:
    with RedisServer(tmp_path / "redis", {"requirepass": "s3cret"}) as server:
        place = f"127.0.0.1:{server.port}"
        with pytest.raises(BrokerError, match="asks for a password"):
            await connect(f"redis://{place}").publish("orders", ONE)
        with pytest.raises(BrokerError, match="does not accept this user and password") as caught:
            await connect(f"redis://:wr0ng@{place}").publish("orders", ONE)
        await connect(server.url).publish("orders", ONE)

    assert "wr0ng" not in str(caught.value)


async def test_a_user_who_may_not_look_at_the_server_can_still_publish(tmp_path: Path, connect: Connect) -> None:
    with RedisServer(tmp_path / "redis") as server:
        server.ask("ACL", "SETUSER", "shop", "on", ">pw", "~*", "+@all", "-config", "-info")
        url = f"redis://shop:pw@127.0.0.1:{server.port}"
        await connect(url).publish("orders", ONE)
        await connect(url).subscribe("orders", group="shop", options=Options(owner="one"))
        server.ask("ACL", "SETUSER", "shop", "-xadd")
        with pytest.raises(BrokerError, match="does not permit"):
            await connect(url).publish("orders", ONE)


async def test_a_server_that_was_started_again_is_found(fresh_redis: RedisServer, connect: Connect) -> None:
    broker = connect(fresh_redis.url)
    await broker.publish("orders", ONE)
    fresh_redis.kill()
    with pytest.raises(BrokerUnavailable):
        await broker.publish("orders", ONE)
    fresh_redis.start()
    until(fresh_redis.is_ready, what="ready")
    await broker.publish("orders", ONE)

    assert fresh_redis.ask("XLEN", "orders") == 2


async def test_a_server_that_forgot_our_scripts_gets_them_again(fresh_redis: RedisServer, connect: Connect) -> None:
    broker = connect(fresh_redis.url)
    await broker.subscribe("orders", group="shop", options=Options(owner="one"))
    fresh_redis.ask("SCRIPT", "FLUSH")
    await broker.subscribe("orders", group="shop", options=Options(owner="one"))

    assert (await broker.depth("orders", group="shop")).waiting == 0
