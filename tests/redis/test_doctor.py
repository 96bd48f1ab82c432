"""What the doctor finds, and which loss it names."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from redrive.brokers.redis import RedisBroker
from redrive.brokers.redis.address import Durability
from redrive.brokers.redis.doctor import Facts, _of_this
from redrive.brokers.redis.keys import QueueKeys
from redrive.core.message import Message
from redrive.core.ports import Finding, Options
from tests.servers.redis import RedisServer

WELL = {
    "redis_version": "7.0.15",
    "run_id": "x",
    "aof_enabled": "1",
    "connected_slaves": "1",
    "aof_last_write_status": "ok",
    "rdb_last_bgsave_status": "ok",
}
SET = {"maxmemory-policy": "noeviction", "appendfsync": "always", "min-replicas-to-write": "1", "save": ""}


def findings(
    *, info: dict[str, str] | None = None, settings: dict[str, str] | None = None, durability: str = "wait:1"
) -> dict[str, Finding]:
    facts = Facts(
        {**WELL, **(info or {})}, SET if settings is None else settings, Durability.of(durability), fails_over=False
    )
    return {finding.check: finding for finding in _of_this(facts, several=False)}


def test_where_all_is_well_nothing_is_advised() -> None:
    found = findings()

    assert set(found) == {"version", "eviction", "persistence", "disk", "replicas", "cut off"}
    assert {(finding.level, finding.advice) for finding in found.values()} == {("ok", "")}


@pytest.mark.parametrize(
    ("check", "level", "changed"),
    [
        ("version", "fail", {"info": {"redis_version": "6.2.5"}}),
        ("eviction", "fail", {"settings": {**SET, "maxmemory-policy": "allkeys-lru"}}),
        ("eviction", "fail", {"settings": {}, "info": {"maxmemory_policy": "volatile-ttl"}}),
        ("persistence", "fail", {"info": {"aof_enabled": "0"}}),
        ("persistence", "warn", {"settings": {**SET, "appendfsync": "everysec"}}),
        ("persistence", "warn", {"settings": {}}),
        ("disk", "fail", {"info": {"rdb_last_bgsave_status": "err"}}),
        ("disk", "fail", {"info": {"aof_last_write_status": "err"}}),
        ("replicas", "fail", {"info": {"connected_slaves": "0"}}),
        ("replicas", "fail", {"durability": "wait:2"}),
        ("replicas", "warn", {"durability": "local"}),
        ("cut off", "warn", {"settings": {**SET, "min-replicas-to-write": "0"}}),
    ],
)
def test_what_could_lose_messages_is_found_with_the_loss_and_what_to_do(
    check: str, level: str, changed: dict[str, dict[str, str]]
) -> None:
    found = findings(**changed)[check]  # type: ignore[arg-type]

    assert found.level == level
    assert found.prevents
    assert found.advice


async def test_a_server_that_keeps_everything_is_well(
    fresh_redis: RedisServer, connect: Callable[[str], RedisBroker]
) -> None:
    broker = connect(fresh_redis.url)
    await broker.publish("orders", [Message("", "orders", b"1")])
    await broker.subscribe("orders", group="shop", options=Options(owner="one"))

    assert {finding.check: finding.level for finding in await broker.diagnose()} == {
        "version": "ok",
        "eviction": "ok",
        "persistence": "ok",
        "disk": "ok",
        "replicas": "ok",
        "trimming": "ok",
    }


async def test_the_doctor_asks_the_server_itself(tmp_path: Path, connect: Callable[[str], RedisBroker]) -> None:
    settings = {"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru", "save": "3600 1"}
    with RedisServer(tmp_path / "redis", settings) as server:
        found = {finding.check: finding for finding in await connect(server.url).diagnose()}

    assert (found["eviction"].level, found["persistence"].level) == ("fail", "fail")
    assert found["eviction"].found == "maxmemory-policy is allkeys-lru"
    assert found["persistence"].found == "appendonly is off, save is '3600 1'"


@pytest.mark.parametrize("read_after", [0, 20, 100])
async def test_messages_that_were_trimmed_too_early_are_found(
    broker: RedisBroker, client: Any, queue: str, read_after: int
) -> None:
    await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    await broker.publish(queue, [Message("", queue, b"1")] * 100)
    client.xreadgroup("shop", "one", {queue: ">"}, count=10)
    client.xtrim(queue, maxlen=50, approximate=False)
    if read_after:
        client.xreadgroup("shop", "one", {queue: ">"}, count=read_after)
    found = [finding for finding in await broker.diagnose() if finding.found.startswith(queue)]

    assert [(finding.check, finding.level) for finding in found] == [("trimming", "fail")]


async def test_streams_that_we_trim_are_well(broker: RedisBroker, client: Any, queue: str) -> None:
    await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    ids = await broker.publish(queue, [Message("", queue, b"1")] * 100)
    client.xreadgroup("shop", "one", {queue: ">"}, count=60)
    client.xack(queue, "shop", *ids[:50])
    client.xtrim(queue, minid=ids[50], approximate=False)

    assert [finding for finding in await broker.diagnose() if finding.found.startswith(queue)] == []


async def test_what_a_gone_group_has_left_is_found_and_can_be_deleted(
    broker: RedisBroker, client: Any, queue: str
) -> None:
    keys = QueueKeys(queue).group("shop")
    await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    client.xgroup_destroy(queue, "shop")
    (found,) = [finding for finding in await broker.diagnose() if finding.found.startswith(queue)]

    assert (found.check, found.level) == ("gone group", "warn")
    assert keys.lane in found.advice
    for command in found.advice.replace("'", "").split("; "):
        client.execute_command(*command.removeprefix("redis-cli ").split())
    assert [finding for finding in await broker.diagnose() if finding.found.startswith(queue)] == []
    assert client.exists(*keys.all_own) == 0
