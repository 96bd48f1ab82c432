"""How much is where, whatever others do to the stream."""

from typing import Any

from redrive.brokers.redis import RedisBroker
from redrive.brokers.redis.keys import QueueKeys
from redrive.core.message import Message
from redrive.core.ports import Depth, Options

HOUR = 3_600_000


def fill(client: Any, queue: str, count: int) -> list[bytes]:
    with client.pipeline(transaction=False) as pipeline:
        for number in range(count):
            pipeline.xadd(queue, {"payload": str(number)})
        ids: list[bytes] = pipeline.execute()
        return ids


def read(client: Any, queue: str, count: int) -> None:
    client.xreadgroup("theirs", "worker", {queue: ">"}, count=count)


async def where(broker: RedisBroker, queue: str, *, group: str = "theirs") -> tuple[int, int, int, int]:
    depth: Depth = await broker.depth(queue, group=group)
    return depth.waiting, depth.in_flight, depth.scheduled, depth.held


async def test_a_group_of_another_framework_is_counted_too(broker: RedisBroker, client: Any, queue: str) -> None:
    fill(client, queue, 5)
    client.xgroup_create(queue, "theirs", "0")
    read(client, queue, 2)

    assert await where(broker, queue) == (3, 2, 0, 0)


async def test_what_was_trimmed_before_it_was_read_is_not_waiting(broker: RedisBroker, client: Any, queue: str) -> None:
    fill(client, queue, 100)
    client.xgroup_create(queue, "theirs", "0")
    read(client, queue, 10)
    client.xtrim(queue, maxlen=50, approximate=False)
    unread = await where(broker, queue)
    read(client, queue, 20)
    some = await where(broker, queue)
    read(client, queue, 100)

    assert [unread, some, await where(broker, queue)] == [(50, 10, 0, 0), (30, 30, 0, 0), (0, 60, 0, 0)]


async def test_what_was_deleted_before_it_was_read_is_not_waiting(broker: RedisBroker, client: Any, queue: str) -> None:
    ids = fill(client, queue, 2_700)
    client.xgroup_create(queue, "theirs", "0")
    read(client, queue, 150)
    client.xdel(queue, ids[200], ids[-1])

    assert await where(broker, queue) == (2_548, 150, 0, 0)


async def test_what_somebody_acked_while_it_was_scheduled_is_nowhere(
    broker: RedisBroker, client: Any, queue: str
) -> None:
    keys = QueueKeys(queue).group("shop")
    await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    (done, left) = await broker.publish(queue, [Message("", queue, b"1"), Message("", queue, b"2")])
    client.xreadgroup("shop", "one", {queue: ">"})
    client.xclaim(queue, "shop", "~retry", 0, [done, left], justid=True)
    due = client.time()[0] * 1000 + HOUR
    client.zadd(keys.due, {f"m{done}": due, f"m{left}": due})
    client.xack(queue, "shop", done)

    assert await where(broker, queue, group="shop") == (0, 0, 1, 0)


async def test_what_is_to_be_retried_and_not_in_the_index_waits(broker: RedisBroker, client: Any, queue: str) -> None:
    await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    (message_id,) = await broker.publish(queue, [Message("", queue, b"1")])
    client.xreadgroup("shop", "one", {queue: ">"})
    client.xclaim(queue, "shop", "~retry", 0, [message_id], justid=True)

    assert await where(broker, queue, group="shop") == (1, 0, 0, 0)


async def test_each_pseudo_consumer_has_its_place(broker: RedisBroker, client: Any, queue: str) -> None:
    await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    suspect, held, in_hand = await broker.publish(queue, [Message("", queue, b"1")] * 3)
    client.xreadgroup("shop", "one", {queue: ">"})
    client.xclaim(queue, "shop", "~suspect", 0, [suspect], justid=True)
    client.xclaim(queue, "shop", "~held", 0, [held], justid=True)

    assert in_hand
    assert await where(broker, queue, group="shop") == (1, 1, 0, 1)
