"""The due index, the lane and the suspects: what is lost there is made again, or does no harm."""

from datetime import timedelta
from typing import Any

import pytest

from redrive.brokers.redis import RedisBroker
from redrive.brokers.redis.keys import GroupKeys, QueueKeys
from redrive.brokers.redis.scripts import script
from redrive.core.message import Message
from redrive.core.outcome import RetryLater, Settlement
from redrive.core.ports import Obituary
from redrive.core.redrive import SendBack
from tests.redis.scenes import LATER, SOON, WAIT, begin, cancel_a_fetch, cut_off, join


@pytest.fixture
def keys(queue: str) -> GroupKeys:
    return QueueKeys(queue).group("shop")


async def test_a_due_index_that_was_lost_is_made_again(
    broker: RedisBroker, queue: str, client: Any, keys: GroupKeys
) -> None:
    worker = await join(broker, queue)
    await broker.publish(queue, [Message("", queue, b"%d" % number) for number in range(1200)])
    taken = [delivery for _ in range(12) for delivery in await worker.fetch(100, wait=WAIT)]
    await worker.settle([Settlement(delivery, RetryLater(LATER)) for delivery in taken[:1100]])
    await worker.release(taken[1100:])
    before = dict(client.zrange(keys.due, 0, -1, withscores=True))
    client.delete(keys.due)
    await worker.heartbeat()
    after = dict(client.zrange(keys.due, 0, -1, withscores=True))

    retried = [b"m" + delivery.token for delivery in taken[:1100]]
    assert (len(before), after.keys()) == (1200, before.keys())
    assert [after[member] for member in retried] == [before[member] for member in retried]


async def test_a_last_copy_that_is_in_no_index_is_found(
    broker: RedisBroker, queue: str, client: Any, keys: GroupKeys
) -> None:
    worker, delivery = await begin(broker, queue)
    cut_off(client, queue)
    await worker.settle([Settlement(delivery, RetryLater(SOON))])
    client.delete(keys.due)
    await worker.heartbeat()
    (again,) = await worker.fetch(1, wait=WAIT)

    assert again.message == delivery.message


async def test_what_is_deleted_from_the_lane_while_in_hand_can_be_retried(
    broker: RedisBroker, queue: str, client: Any, keys: GroupKeys
) -> None:
    worker = await join(broker, queue)
    await broker.send_back([SendBack("a1", 1, queue, b"1", group="shop")])
    (delivery,) = await worker.fetch(1, wait=WAIT)
    client.xtrim(keys.lane, maxlen=0, approximate=False)
    await worker.settle([Settlement(delivery, RetryLater(timedelta()))])
    (again,) = await worker.fetch(1, wait=WAIT)

    assert (again.message.body, again.failures) == (b"1", 1)


async def test_what_somebody_else_writes_into_the_lane_is_a_message(
    broker: RedisBroker, queue: str, client: Any, keys: GroupKeys
) -> None:
    worker = await join(broker, queue)
    for fields in ({"payload": "1"}, {"marks": "[", "fields": "{"}, {"fields": "null", "marks": "null"}):
        client.xadd(keys.lane, fields)
    taken = await worker.fetch(3, wait=WAIT)

    assert len(taken) == 3
    assert taken[0].message.body == b"1"


async def test_a_suspect_that_was_handed_out_unheard_never_runs_in_company(
    broker: RedisBroker, queue: str, client: Any
) -> None:
    _, delivery = await begin(broker, queue, "dead")
    worker = await join(broker, queue, obituary=Obituary("dead", "killed"))
    await worker.heartbeat()
    shop = QueueKeys(queue).group("shop")
    named = [shop.queue, shop.lane, shop.due, shop.stories, shop.paused]
    client.eval(script("suspect").source, 5, *named, "shop", "one", "", "")  # the answer is not heard
    await cancel_a_fetch(worker)
    assert await worker.fetch(1, wait=timedelta()) == []
    found = await worker.fetch_suspect()

    assert found is not None
    assert (found.message.id, found.crashes) == (delivery.message.id, 0)


async def test_a_retry_told_twice_leaves_the_next_attempt_in_hand(broker: RedisBroker, queue: str, client: Any) -> None:
    worker, first = await begin(broker, queue)
    await worker.settle([Settlement(first, RetryLater(timedelta()))])
    (second,) = await worker.fetch(1, wait=WAIT)
    retry = Settlement(second, RetryLater(timedelta()))
    await worker.settle([retry])
    (third,) = await worker.fetch(1, wait=WAIT)
    await worker.settle([retry])
    await cancel_a_fetch(worker)
    assert await worker.fetch(1, wait=timedelta()) == []

    assert await worker.extend([third]) == []
