"""What publishing leaves in Redis."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from redrive.brokers.redis import RedisBroker
from redrive.brokers.redis.keys import QueueKeys
from redrive.core.errors import BrokerError
from redrive.core.message import Message
from redrive.core.ports import Options

MANY = tuple((f"header-{number}", b"%d" % number) for number in range(4_500))
LATER = timedelta(hours=1)


async def test_a_message_is_an_entry_that_anyone_can_read(
    broker: RedisBroker, fields_in: Callable[[str], list[list[bytes]]], queue: str
) -> None:
    sent = Message("", queue, b'{"id": 1}', (("colour", b"red"), ("colour", b"\xff")), key=b"customer 7")
    await broker.publish(queue, [sent])

    assert fields_in(queue) == [
        [b"payload", b'{"id": 1}', b"colour", b"red", b"colour", b"\xff", b"rd-key", b"customer 7"]
    ]


async def test_a_message_with_thousands_of_headers_arrives(broker: RedisBroker, queue: str) -> None:
    await broker.publish(queue, [Message("", queue, b"1", MANY), Message("", queue, b"2")])
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    first, second = await worker.fetch(10, wait=timedelta(seconds=5))

    assert (first.message.body, first.message.headers, second.message.body) == (b"1", MANY, b"2")


async def test_a_batch_of_which_one_cannot_be_written_is_not_written(
    broker: RedisBroker, client: Any, queue: str
) -> None:
    client.set(queue, "something else")
    with pytest.raises(BrokerError, match="holds something other"):
        await broker.publish(queue, [Message("", queue, b"1"), Message("", queue, b"2")])
    with pytest.raises(BrokerError, match="holds something other"):
        await broker.publish(queue, [Message("", queue, b"1")], delay=LATER)

    keys = QueueKeys(queue)
    assert client.get(queue) == b"something else"
    assert client.exists(keys.meta, keys.delayed, keys.delayed_messages) == 0


async def test_a_stream_that_we_began_is_ours_and_others_are_not(broker: RedisBroker, client: Any, queue: str) -> None:
    theirs, delayed = f"{queue}-theirs", f"{queue}-delayed"
    client.xadd(theirs, {"payload": "1"})
    for name in (queue, theirs):
        await broker.publish(name, [Message("", name, b"1")])
    await broker.publish(delayed, [Message("", delayed, b"1")], delay=LATER)

    created = [client.hget(QueueKeys(name).meta, "created") for name in (queue, theirs, delayed)]
    assert created == [b"1", None, b"1"]


async def test_a_delayed_message_has_an_id_that_no_other_has(broker: RedisBroker, queue: str) -> None:
    messages = [Message("", queue, b"same")] * 3
    ids = [*await broker.publish(queue, messages, delay=LATER), *await broker.publish(queue, messages, delay=LATER)]

    assert len(set(ids)) == 6


async def test_a_delayed_message_arrives_under_the_id_it_was_given(broker: RedisBroker, queue: str) -> None:
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    sent = Message("", queue, b"\x00\xff", (("colour", b"\xff"),), key=b"k")
    ids = await broker.publish(queue, [sent], delay=timedelta(milliseconds=1))
    (taken,) = await worker.fetch(1, wait=timedelta(seconds=5))

    assert [taken.message.id] == ids
    assert (taken.message.body, taken.message.headers, taken.message.key) == (sent.body, sent.headers, b"k")


async def test_nothing_is_left_of_a_delayed_message_that_has_arrived(
    broker: RedisBroker, client: Any, queue: str
) -> None:
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    await broker.publish(queue, [Message("", queue, b"1")], delay=timedelta(milliseconds=1))
    await worker.fetch(1, wait=timedelta(seconds=5))

    assert client.exists(QueueKeys(queue).delayed, QueueKeys(queue).delayed_messages) == 0


async def test_hundreds_may_publish_at_once(broker: RedisBroker, queue: str) -> None:
    answers = await asyncio.gather(*(broker.publish(queue, [Message("", queue, b"1")]) for _ in range(300)))

    assert len({message_id for ids in answers for message_id in ids}) == 300
