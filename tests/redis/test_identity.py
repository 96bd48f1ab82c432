"""Which message is which, and what is left of it: copies, ids, counts, groups, bytes."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from redrive.brokers.redis import RedisBroker
from redrive.brokers.redis.keys import GroupKeys, QueueKeys
from redrive.core.delivery import Delivery
from redrive.core.errors import BrokerError, BrokerUnavailable, DeadLetterError
from redrive.core.letter import Source, letter_id
from redrive.core.message import Message
from redrive.core.outcome import GiveUp, RetryLater, Settlement
from redrive.core.ports import Obituary, Subscription
from tests.redis.letters import letter
from tests.redis.scenes import SOON, WAIT, begin, cut_off, fetch_when_due, join


@pytest.fixture
def keys(queue: str) -> GroupKeys:
    return QueueKeys(queue).group("shop")


async def test_a_copy_of_a_delayed_message_is_a_message_of_its_own(
    broker: RedisBroker, queue: str, client: Any
) -> None:
    worker = await join(broker, queue)
    (given,) = await broker.publish(queue, [Message("", queue, b"1")], delay=SOON)
    client.response_callbacks.clear()
    (first,) = await fetch_when_due(worker)
    ((_, fields),) = client.execute_command("XRANGE", queue, "-", "+")
    client.execute_command("XADD", queue, "*", *fields)
    (copy,) = await worker.fetch(1, wait=WAIT)
    ids = {identity(worker, delivery) for delivery in (first, copy)}

    assert first.message.id == given
    assert copy.message.id != given
    assert (len(ids), copy.message.body, copy.message.headers) == (2, b"1", ())


def identity(worker: Subscription, delivery: Delivery) -> str:
    source = Source("redis", worker.incarnation)
    return letter_id(
        broker=source.broker,
        incarnation=source.incarnation,
        queue=delivery.message.queue,
        group=delivery.group,
        origin=delivery.message.origin_id,
    )


async def test_a_delayed_message_that_was_trimmed_keeps_its_id(broker: RedisBroker, queue: str, client: Any) -> None:
    worker = await join(broker, queue)
    (given,) = await broker.publish(queue, [Message("", queue, b"1")], delay=SOON)
    (first,) = await fetch_when_due(worker)
    cut_off(client, queue)
    await worker.settle([Settlement(first, RetryLater(timedelta()))])
    (again,) = await worker.fetch(1, wait=WAIT)

    assert (again.message.id, first.message.id) == (given, given)


async def test_messages_that_fall_due_together_keep_their_ids_and_their_order(
    broker: RedisBroker, queue: str, client: Any
) -> None:
    worker = await join(broker, queue)
    ids = await broker.publish(queue, [Message("", queue, b"%d" % number) for number in range(5)], delay=SOON)
    client.xadd(queue, {"payload": "far"}, id="9999999999999-7")
    taken: list[Delivery] = []
    while len(taken) < 6:
        taken += await worker.fetch(10, wait=WAIT)

    assert [one.message.id for one in taken if one.message.body != b"far"] == sorted(ids)


async def test_a_stream_whose_ids_are_beyond_counting_still_gets_delayed_messages(
    broker: RedisBroker, queue: str, client: Any
) -> None:
    worker = await join(broker, queue)
    client.xadd(queue, {"payload": "far"}, id="18446744073709551615-5")
    await broker.publish(queue, [Message("", queue, b"1")], delay=SOON)
    taken: list[Delivery] = []
    while len(taken) < 2:
        taken += await worker.fetch(10, wait=WAIT)

    assert [one.message.body for one in taken] == [b"far", b"1"]


async def test_history_that_somebody_reads_counts_for_nothing(broker: RedisBroker, queue: str, client: Any) -> None:
    _, delivery = await begin(broker, queue)
    for _ in range(10):
        client.xreadgroup("shop", "one", {queue: "0"})
    other = await join(broker, queue, "two", obituary=Obituary("one", "killed"))
    again = await other.fetch_suspect()

    assert again is not None
    assert (again.message, again.attempt, again.crashes) == (delivery.message, 1, 0)


@pytest.mark.parametrize("wrong", ["stories", "due"])
async def test_a_key_that_holds_something_else_is_told_before_anything_is_counted(
    wrong: str, broker: RedisBroker, queue: str, client: Any, keys: GroupKeys
) -> None:
    worker, delivery = await begin(broker, queue)
    retry = Settlement(delivery, RetryLater(SOON))
    client.set(getattr(keys, wrong), "not ours")
    for _ in range(5):
        with pytest.raises(BrokerError, match="expected a"):
            await worker.settle([retry])
    client.delete(getattr(keys, wrong))
    await worker.settle([retry])
    (again,) = await fetch_when_due(worker)

    assert again.failures == 1


async def test_a_group_that_was_destroyed_is_made_again_and_reads_from_the_beginning(
    broker: RedisBroker, queue: str, client: Any
) -> None:
    worker, delivery = await begin(broker, queue, trim="never")
    client.xgroup_destroy(queue, "shop")
    with pytest.raises(BrokerUnavailable, match="group is gone"):
        await worker.fetch(1, wait=timedelta())
    (again,) = await worker.fetch(1, wait=WAIT)

    assert again.message == delivery.message


async def test_what_another_group_has_not_read_is_not_cut_off(broker: RedisBroker, queue: str, client: Any) -> None:
    worker = await join(broker, queue, trim="acked")
    client.xgroup_create(queue, "mail", id="0")
    await broker.publish(queue, [Message("", queue, b"%d" % number) for number in range(3)])
    await worker.settle([*await worker.fetch(3, wait=WAIT)])
    await worker.heartbeat()
    before = client.xlen(queue)
    client.xreadgroup("mail", "m", {queue: ">"}, count=2, noack=True)
    await worker.heartbeat()

    assert (before, client.xlen(queue)) == (3, 1)


async def test_a_stream_of_somebody_else_is_not_cut_off_unasked(broker: RedisBroker, queue: str, client: Any) -> None:
    client.xadd(queue, {"payload": "1"})
    worker = await join(broker, queue)
    await worker.settle([*await worker.fetch(3, wait=WAIT)])
    await worker.heartbeat()

    assert client.xlen(queue) == 1


async def test_when_all_is_done_nothing_is_left_without_an_owner_or_an_end(
    broker: RedisBroker, queue: str, client: Any, keys: GroupKeys
) -> None:
    worker = await join(broker, queue)
    await broker.publish(queue, [Message("", queue, b"1")] * 4)
    await broker.publish(queue, [Message("", queue, b"1")], delay=SOON)
    done, failed, dead, output = await worker.fetch(4, wait=WAIT)
    out = Message("", f"{queue}-paid", b"1")
    await worker.settle(
        [
            done,
            Settlement(failed, RetryLater(SOON)),
            Settlement(dead, GiveUp("no"), letter=letter(queue)),
            Settlement(output, output=out),
        ]
    )
    (entry,) = await broker.dead_letters(queue).peek()
    await broker.dead_letters(queue).redrive(entry.entry_id)
    left = 3
    while left:
        found = await worker.fetch(4, wait=WAIT)
        await worker.settle([Settlement(delivery) for delivery in found])
        left -= len(found)
    await worker.heartbeat()
    await worker.aclose()
    owned = {queue, keys.meta, keys.lane, f"{queue}:dlq", f"{queue}-paid", QueueKeys(f"{queue}-paid").meta}
    orphans = {key.decode() for key in client.keys(f"*{queue}*") if client.ttl(key) < 0} - owned

    assert orphans == set()
    assert (client.xlen(queue), client.xlen(keys.lane)) == (0, 0)
    assert client.xinfo_consumers(queue, "shop") == [] or {
        found["name"] for found in client.xinfo_consumers(queue, "shop")
    } == {b"~retry"}


@pytest.mark.parametrize(
    "fields",
    [
        [b"a", b"1", b"payload", b"x"],
        [b"payload", b"x", b"payload", b"y"],
        [b"a", b"1", b"payload", b"x", b"payload", b"y", b"b", b""],
        [b"a", b"1", b"a", b"2"],
        [b"\xff\xfe", b"\x00", b"", b""],
        [b"payload", b"", b"\xed\xa0\x80", b"\xff"],
    ],
    ids=["last", "twice", "twice in between", "none", "names that are no text", "surrogates"],
)
@pytest.mark.parametrize("way", ["retry", "trimmed", "lane", "queue"])
async def test_every_entry_goes_through_byte_for_byte(
    way: str, fields: list[bytes], broker: RedisBroker, queue: str, client: Any, keys: GroupKeys
) -> None:
    client.response_callbacks.clear()
    worker = await join(broker, queue)
    client.execute_command("XADD", queue, "*", *fields)
    (delivery,) = await worker.fetch(1, wait=WAIT)
    if way in {"retry", "trimmed"}:
        if way == "trimmed":
            cut_off(client, queue)
        await worker.settle([Settlement(delivery, RetryLater(timedelta()))])
    else:
        dead = replace(
            letter(queue, payload=delivery.message.body),
            headers=delivery.message.headers,
            group="shop" if way == "lane" else "",
        )
        await worker.settle([Settlement(delivery, GiveUp("no"), letter=dead)])
        (entry,) = await broker.dead_letters(queue).peek()
        await broker.dead_letters(queue).redrive(entry.entry_id)
    (again,) = await worker.fetch(1, wait=WAIT)

    assert (again.message.body, again.message.headers) == (delivery.message.body, delivery.message.headers)
    if way == "queue":
        assert client.execute_command("XREVRANGE", queue, "+", "-", "COUNT", 1)[0][1][: len(fields)] == fields


LAST_ID = "18446744073709551615-18446744073709551615"


async def test_a_letter_whose_queue_takes_no_more_entries_stays_in_the_dlq(
    broker: RedisBroker, queue: str, client: Any
) -> None:
    dlq = broker.dead_letters(queue)
    await dlq.send(replace(letter(queue), group=""))
    (entry,) = await dlq.peek()
    client.xadd(queue, {"payload": "somebody else's"}, id=LAST_ID)
    for _ in range(2):
        with pytest.raises(BrokerError):
            await dlq.redrive(entry.entry_id)

    assert (await dlq.length(), client.xlen(queue)) == (1, 1)


async def test_a_letter_that_could_not_be_written_is_not_taken_for_written(
    broker: RedisBroker, queue: str, client: Any
) -> None:
    dlq = broker.dead_letters(queue)
    client.xadd(dlq.name, {"payload": "somebody else's"}, id=LAST_ID)
    with pytest.raises(DeadLetterError):
        await dlq.send(letter(queue))
    client.delete(dlq.name)
    await dlq.send(letter(queue))

    assert await dlq.length() == 1
