"""A worker that comes back after its messages have passed to another one: its success counts, and leaves nothing."""

from datetime import timedelta

import pytest
import redis

from redrive.brokers.redis import RedisBroker
from redrive.brokers.redis.keys import QueueKeys
from redrive.core.delivery import Delivery
from redrive.core.message import Message
from redrive.core.outcome import RetryLater, Settlement, SettleStatus
from redrive.core.ports import Obituary, Options, Subscription

WAIT = timedelta(seconds=1)
LATER = timedelta(hours=1)


async def join(broker: RedisBroker, queue: str, owner: str, *, after: str) -> Subscription:
    options = Options(owner=owner, obituary=Obituary(after, "killed by SIGKILL"))
    return await broker.subscribe(queue, group="shop", options=options)


async def taken_alone(broker: RedisBroker, queue: str) -> tuple[Subscription, Delivery]:
    """A suspect in the hands of a worker, and its message acked meanwhile by the one that was taken for dead."""
    zombie = await join(broker, queue, "zombie", after="")
    await broker.publish(queue, [Message("", queue, b"1")])
    (delivery,) = await zombie.fetch(1, wait=WAIT)
    other = await join(broker, queue, "other", after="zombie")
    suspect = await other.fetch_suspect()
    assert suspect is not None
    (answer,) = await zombie.settle([Settlement(delivery)])
    assert answer.status is SettleStatus.DONE
    return other, suspect


@pytest.mark.parametrize("end", ["acked", "failed", "released", "crashed"])
async def test_nothing_is_left_of_a_suspect_with_which_a_zombie_succeeded(
    end: str, broker: RedisBroker, queue: str, client: redis.Redis
) -> None:
    other, suspect = await taken_alone(broker, queue)

    if end == "acked":
        await other.settle([Settlement(suspect)])
    elif end == "failed":
        await other.settle([Settlement(suspect, RetryLater(LATER))])
    elif end == "released":
        await other.release([suspect])
    last = await join(broker, queue, "last", after="other")
    waiting = await last.heartbeat()
    keys = QueueKeys(queue).group("shop")

    assert waiting == 0
    assert not client.exists(keys.stories, keys.due)


async def test_the_story_of_a_message_that_waits_for_its_retry_is_kept(broker: RedisBroker, queue: str) -> None:
    worker = await join(broker, queue, "worker", after="")
    await broker.publish(queue, [Message("", queue, b"1")])
    (delivery,) = await worker.fetch(1, wait=WAIT)
    await worker.settle([Settlement(delivery, RetryLater(timedelta(milliseconds=1)))])
    await worker.heartbeat()
    (again,) = await worker.fetch(1, wait=WAIT)
    await worker.heartbeat()

    assert again.failures == 1


async def test_the_story_of_a_message_whose_entry_is_gone_is_kept(
    broker: RedisBroker, queue: str, client: redis.Redis
) -> None:
    worker = await join(broker, queue, "worker", after="")
    await broker.publish(queue, [Message("", queue, b"1")])
    (delivery,) = await worker.fetch(1, wait=WAIT)
    client.xtrim(queue, maxlen=0, approximate=False)
    await worker.settle([Settlement(delivery, RetryLater(timedelta(milliseconds=1)))])
    await worker.heartbeat()
    (again,) = await worker.fetch(1, wait=WAIT)
    await worker.heartbeat()

    assert (again.message.body, again.failures) == (b"1", 1)


async def test_a_worker_that_died_here_is_off_the_list_once_it_holds_nothing(
    broker: RedisBroker, queue: str, client: redis.Redis
) -> None:
    dead = await join(broker, queue, "dead", after="")
    await broker.publish(queue, [Message("", queue, b"1")])
    await dead.fetch(1, wait=WAIT)
    await dead.heartbeat()
    worker = await join(broker, queue, "worker", after="dead")
    await worker.heartbeat()
    suspects = await worker.heartbeat()
    keys = QueueKeys(queue).group("shop")

    assert suspects == 1
    assert [one.name for one in await broker.alive(queue, group="shop")] == ["worker"]
    assert [found["name"] for found in client.xinfo_consumers(queue, "shop")] == [b"~suspect"]
    assert client.ttl(keys.workers) > 0
