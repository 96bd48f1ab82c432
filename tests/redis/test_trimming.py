"""What every group is done with leaves the stream; nothing else does, whatever is pending between."""

import random
from typing import Any

import pytest

from redrive.brokers.redis import RedisBroker
from redrive.core.message import Message
from redrive.core.outcome import GiveUp, Outcome, RetryLater, Settlement
from redrive.core.ports import Subscription
from tests.redis.letters import letter
from tests.redis.scenes import HOLD, LATER, WAIT, join


async def drain(worker: Subscription, count: int) -> None:
    """Succeed with so many messages."""
    while count:
        deliveries = await worker.fetch(min(count, 100), wait=WAIT)
        await worker.settle([*deliveries])
        count -= len(deliveries)


def in_hands(client: Any, queue: str) -> set[bytes]:
    """The entries that some group has not read, or is not done with."""
    wanted: set[bytes] = set()
    for group in client.xinfo_groups(queue):
        after = f"({group['last-delivered-id'].decode()}"
        wanted |= {entry_id for entry_id, _ in client.xrange(queue, min=after)}
        wanted |= {one["message_id"] for one in client.xpending_range(queue, group["name"], "-", "+", 10_000)}
    return wanted


@pytest.mark.parametrize("outcome", [GiveUp("no"), RetryLater(LATER)], ids=["held", "due in an hour"])
async def test_one_message_that_stays_does_not_keep_those_that_are_done(
    outcome: Outcome, broker: RedisBroker, queue: str, client: Any
) -> None:
    worker = await join(broker, queue, trim="acked", dlq=HOLD)
    (stays, *_) = await broker.publish(queue, [Message("", queue, b"%d" % number) for number in range(1001)])
    (delivery,) = await worker.fetch(1, wait=WAIT)
    await worker.settle([Settlement(delivery, outcome, letter=letter(queue))])
    await drain(worker, 1000)
    await worker.heartbeat()

    assert [entry_id.decode() for entry_id, _ in client.xrange(queue)] == [stays]
    assert (await broker.depth(queue, group="shop")).waiting == 0


async def test_what_is_done_is_found_behind_thousands_that_stay(broker: RedisBroker, queue: str, client: Any) -> None:
    worker = await join(broker, queue, trim="acked", dlq=HOLD)
    await broker.publish(queue, [Message("", queue, b"1")] * 2500)
    for _ in range(25):
        held = await worker.fetch(100, wait=WAIT)
        await worker.settle([Settlement(delivery, RetryLater(LATER)) for delivery in held])
    await broker.publish(queue, [Message("", queue, b"1")] * 500)
    await drain(worker, 500)
    await worker.heartbeat()

    assert client.xlen(queue) == 2500


async def test_large_entries_are_looked_at_in_smaller_steps(broker: RedisBroker, queue: str, client: Any) -> None:
    worker = await join(broker, queue, trim="acked", dlq=HOLD)
    await broker.publish(queue, [Message("", queue, b"x" * 300_000)] * 41)
    (delivery,) = await worker.fetch(1, wait=WAIT)
    await worker.settle([Settlement(delivery, RetryLater(LATER))])
    await drain(worker, 40)
    await worker.heartbeat()

    assert client.xlen(queue) == 1


@pytest.mark.parametrize("seed", range(8))
async def test_nothing_is_ever_taken_that_a_group_has_not_read_or_is_not_done_with(
    seed: int, broker: RedisBroker, queue: str, client: Any
) -> None:
    chance = random.Random(seed)
    worker = await join(broker, queue, trim="acked")
    groups = ["mail", "bill", "count"]
    for group in groups:
        client.xgroup_create(queue, group, id="0")
    for _ in range(30):
        await broker.publish(queue, [Message("", queue, b"1")] * chance.randint(1, 60))
        for _ in range(chance.randint(0, 3)):
            group = chance.choice([*groups, "shop"])
            read = client.xreadgroup(group, f"{group}-1", {queue: ">"}, count=chance.randint(1, 90))
            ids = [entry_id for _, entries in read for entry_id, _ in entries]
            if done := chance.sample(ids, chance.choice([0, len(ids) // 2, len(ids)])):
                client.xack(queue, group, *done)
        wanted = in_hands(client, queue)
        await worker.heartbeat()
        left = {entry_id for entry_id, _ in client.xrange(queue)}

        assert left == wanted
