"""Joining groups and watching over them."""

import asyncio
import json
import subprocess
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from redrive.brokers import process
from redrive.brokers.redis import RedisBroker
from redrive.brokers.redis.keys import QUEUES, QueueKeys
from redrive.core.errors import BrokerError, BrokerUnavailable, ConfigError, QueueNotFound
from redrive.core.message import Message
from redrive.core.ports import Options
from tests.servers.redis import RedisServer

WAIT = timedelta(seconds=5)


async def join(broker: RedisBroker, queue: str, group: str = "shop") -> str:
    return (await broker.subscribe(queue, group=group, options=Options(owner="one"))).incarnation


def ended_pid() -> int:
    ended = subprocess.Popen(["true"])
    ended.wait()
    return ended.pid


async def test_of_groups_that_join_at_once_one_is_the_first(
    connect: Callable[[str], RedisBroker], redis_url: str, queue: str
) -> None:
    brokers = [connect(redis_url) for _ in range(6)]
    await brokers[0].publish(queue, [Message("", queue, b"1")])
    await asyncio.gather(*(join(broker, queue, f"g{number}") for number, broker in enumerate(brokers)))

    assert sorted([(await brokers[0].depth(queue, group=f"g{number}")).waiting for number in range(6)]) == [*[0] * 5, 1]


async def test_a_queue_deleted_and_made_again_has_another_incarnation(
    broker: RedisBroker, client: Any, queue: str
) -> None:
    first = await join(broker, queue)
    client.delete(queue)

    assert await join(broker, queue) != first


async def test_a_group_joins_a_stream_that_somebody_else_began(broker: RedisBroker, client: Any, queue: str) -> None:
    client.xadd(queue, {"payload": "1"})
    client.xgroup_create(queue, "theirs", "0")
    await join(broker, queue)

    assert client.hget(QueueKeys(queue).meta, "created") is None
    assert {group for name, group in await broker.queues() if name == queue} == {"shop", "theirs"}
    assert (await broker.depth(queue, group="shop")).waiting == 0


@pytest.mark.parametrize("taken", ["queue", "meta", "lane"])
async def test_a_name_that_holds_something_else_is_left_as_it_is(
    broker: RedisBroker, client: Any, queue: str, taken: str
) -> None:
    keys = QueueKeys(queue).group("shop")
    client.set(getattr(keys, taken), "something else")
    with pytest.raises(BrokerError, match="holds something other"):
        await join(broker, queue)

    assert client.exists(keys.queue, keys.meta, keys.lane) == 1


async def test_a_dlq_is_listed_when_it_exists(broker: RedisBroker, client: Any, queue: str) -> None:
    await join(broker, queue)
    before = {name for name, _ in await broker.queues() if name.startswith(queue)}
    client.xadd(f"{queue}:dlq", {"payload": "1"})
    after = {name for name, _ in await broker.queues() if name.startswith(queue)}

    assert (before, after) == ({queue}, {queue, f"{queue}:dlq"})


async def test_a_queue_that_was_deleted_or_is_no_stream_is_not_listed(
    broker: RedisBroker, client: Any, queue: str
) -> None:
    await join(broker, queue)
    client.delete(queue)
    client.set(f"{queue}-text", "no stream")
    client.sadd(QUEUES, f"{queue}-text")

    assert [name for name, _ in await broker.queues() if name.startswith(queue)] == []


async def test_watching_over_what_is_not_there_says_so(broker: RedisBroker, queue: str) -> None:
    for watch in (
        broker.pause(queue, group="shop", why="x"),
        broker.free(queue, group="shop"),
        broker.alive(queue, group="shop"),
        broker.depth(queue, group="shop"),
    ):
        with pytest.raises(QueueNotFound, match=f"no queue '{queue}' with a group 'shop'"):
            await watch


async def test_hundreds_that_are_held_are_freed(broker: RedisBroker, client: Any, queue: str) -> None:
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    ids = await broker.publish(queue, [Message("", queue, b"%d" % number) for number in range(250)])
    client.xreadgroup("shop", "one", {queue: ">"})
    client.xclaim(queue, "shop", "~held", 0, [*ids], justid=True)
    freed = await broker.free(queue, group="shop")
    depth = await broker.depth(queue, group="shop")

    assert (freed, depth.waiting, depth.held) == (250, 250, 0)
    assert await broker.free(queue, group="shop") == 0
    assert len(await worker.fetch(100, wait=WAIT)) == 100


async def test_what_is_held_and_gone_from_the_stream_stays_in_sight(
    broker: RedisBroker, client: Any, queue: str
) -> None:
    await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    (message_id,) = await broker.publish(queue, [Message("", queue, b"1")])
    client.xreadgroup("shop", "one", {queue: ">"})
    client.xclaim(queue, "shop", "~held", 0, [message_id], justid=True)
    client.xdel(queue, message_id)

    assert await broker.free(queue, group="shop") == 0
    assert (await broker.depth(queue, group="shop")).held == 1


async def test_a_worker_whose_process_ended_is_not_alive(broker: RedisBroker, client: Any, queue: str) -> None:
    await join(broker, queue)
    boot, namespace, *_ = process.identity().split(" ")
    gone = ended_pid()
    record = {"host": "here", "pid": gone, "version": "", "paused": None, "seen_at": client.time()[0] * 1000}
    workers = QueueKeys(queue).group("shop").workers
    client.hset(workers, "dead", json.dumps({**record, "process": f"{boot} {namespace} {gone} 1"}))
    client.hset(workers, "elsewhere", json.dumps({**record, "process": "another machine 1 1"}))
    client.hset(workers, "damaged", "{")

    assert [alive.name for alive in await broker.alive(queue, group="shop")] == ["elsewhere"]


async def test_a_queue_name_may_have_a_hash_tag(broker: RedisBroker, queue: str) -> None:
    tagged = f"{{{queue}}}:eu"
    worker = await broker.subscribe(tagged, group="shop", options=Options(owner="one"))
    await broker.publish(tagged, [Message("", tagged, b"1")])

    assert [taken.message.queue for taken in await worker.fetch(1, wait=WAIT)] == [tagged]
    assert broker.dead_letters(tagged).name == f"{tagged}:dlq"
    with pytest.raises(ConfigError):
        broker.dead_letters("{a}{b}")


async def test_after_a_flush_the_queue_is_found_again(
    fresh_redis: RedisServer, connect: Callable[[str], RedisBroker], queue: str
) -> None:
    broker = connect(fresh_redis.url)
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    fresh_redis.flush()
    with pytest.raises(BrokerUnavailable, match="group is gone"):
        await worker.fetch(1, wait=timedelta())

    assert await broker.queues() == [(queue, "shop")]
    assert worker.incarnation
