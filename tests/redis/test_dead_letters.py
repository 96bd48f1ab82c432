"""The DLQ as others see it, and letters at the limits of the server."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

import redrive
from redrive.brokers.redis import RedisBroker
from redrive.brokers.redis.keys import QueueKeys
from redrive.core.errors import BrokerError, BrokerUnavailable, DeadLetterError, LetterNotFound
from redrive.core.message import Message
from redrive.core.outcome import GiveUp, RetryLater, Settlement, SettleStatus
from redrive.core.place import DeadLetterPlace
from redrive.core.ports import Options
from tests.redis.letters import AT, letter
from tests.servers.redis import RedisServer

MIB = 1024 * 1024
WAIT = timedelta(seconds=5)


@pytest.fixture
def small_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that takes no argument of more than a mebibyte."""
    with RedisServer(tmp_path / "redis", {"proto-max-bulk-len": "1mb"}) as server:
        yield server


async def test_a_letter_can_be_read_in_a_terminal(broker: RedisBroker, client: Any, queue: str) -> None:
    dlq = broker.dead_letters(queue)
    await dlq.send(letter(queue))
    ((_, fields),) = client.xrange(dlq.name)

    expected = {
        b"payload": b'{"id": 1}',
        b"original_message_id": b"1-1",
        b"error_type": b"ValueError",
        b"error_message": b"no",
        b"retry_count": b"3",
        b"user_id": b"u7",
    }
    assert dlq.name == f"{queue}:dlq"
    assert next(iter(fields)) == b"payload"
    assert {name: fields[name] for name in expected} == expected
    assert datetime.fromisoformat(fields[b"failed_at"].decode()) == AT


async def test_letters_that_are_settled_together_keep_what_is_their_own(broker: RedisBroker, queue: str) -> None:
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    plain = replace(letter(queue), headers=(), user_id=None)
    wanted = [
        plain,
        letter(queue),
        replace(plain, error_type="KeyError", error_message="", retry_count=0),
        replace(plain, key=b"\x00", received_at=AT, context={"colour": "red"}),
        replace(plain, payload=b"", payload_sha256=hashlib.sha256(b"").hexdigest()),
        replace(letter(queue), error_type="KeyError", node="box"),
    ]
    wanted = [replace(one, letter_id=f"a{number}", dlq_published_at=AT) for number, one in enumerate(wanted)]
    await broker.publish(queue, [Message("", queue, b"1") for _ in range(2 * len(wanted))])
    deliveries = await worker.fetch(2 * len(wanted), wait=WAIT)
    dead = [Settlement(delivery, GiveUp("no"), letter=one) for delivery, one in zip(deliveries, wanted, strict=False)]
    retried, acked = deliveries[len(wanted)], deliveries[len(wanted) + 1 :]
    answers = await worker.settle([*acked, *dead, Settlement(retried, RetryLater(timedelta()), trail=b"[]")])

    assert {answer.status for answer in answers} == {SettleStatus.DONE}
    assert [entry.letter for entry in await broker.dead_letters(queue).peek()] == wanted


async def test_that_a_letter_was_written_is_known_for_an_hour(broker: RedisBroker, client: Any, queue: str) -> None:
    await broker.dead_letters(queue).send(letter(queue))

    assert 3_500 < client.ttl(QueueKeys(queue).once_letter("a1:0")) <= 3_600


async def test_a_dlq_that_is_no_stream_takes_no_letter(broker: RedisBroker, client: Any, queue: str) -> None:
    client.set(f"{queue}:dlq", "something else")
    dlq = broker.dead_letters(queue)
    with pytest.raises(DeadLetterError, match="is not safe in"):
        await dlq.send(letter(queue))
    with pytest.raises(BrokerError, match="holds something other"):
        await dlq.length()


async def test_an_unreachable_server_is_an_error_and_not_an_empty_dlq(connect: Callable[[str], RedisBroker]) -> None:
    dlq = connect("redis://127.0.0.1:1").dead_letters("orders")
    for look in (dlq.length(), dlq.peek(), dlq.redrive("1-1"), dlq.remove("1-1")):
        with pytest.raises(BrokerUnavailable):
            await look
    with pytest.raises(DeadLetterError):
        await dlq.send(letter("orders"))


@pytest.mark.parametrize("entry_id", ["", "-", "+", "1", "1-", "1-1-1", "99999999999999999999-0", "1-x", "$", "*"])
async def test_what_is_no_id_is_not_found(broker: RedisBroker, queue: str, entry_id: str) -> None:
    dlq = broker.dead_letters(queue)
    await dlq.send(letter(queue))
    for change in (dlq.redrive(entry_id), dlq.remove(entry_id), dlq.peek(start=entry_id)):
        with pytest.raises(LetterNotFound):
            await change

    assert await dlq.length() == 1


async def test_whoever_holds_an_entry_that_is_removed_has_lost_it_and_no_letter_is_written_for_it(
    broker: RedisBroker, queue: str
) -> None:
    dlq = broker.dead_letters(queue)
    options = Options(owner="one", moves=True, dlq=DeadLetterPlace(enabled=False, off="hold"))
    collector = await broker.subscribe(dlq.name, group="collector", options=options)
    await dlq.send(letter(queue))
    (taken,) = await collector.fetch(1, wait=WAIT)
    await dlq.remove(taken.message.id)
    answers = await collector.settle([Settlement(taken)])

    assert [answer.status for answer in answers] == ["lost"]
    assert (await dlq.length(), await broker.dead_letters(dlq.name).length()) == (0, 0)


@pytest.mark.parametrize("body", [b"x" * MIB, b"\x00" * MIB], ids=["text", "control characters"])
async def test_a_payload_at_the_size_limit_dies_and_comes_back(
    small_redis: RedisServer, connect: Callable[[str], RedisBroker], queue: str, body: bytes
) -> None:
    broker = connect(small_redis.url)
    await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    dlq = broker.dead_letters(queue)
    await dlq.send(letter(queue, payload=body))
    (entry,) = await dlq.peek()
    await dlq.redrive(entry.entry_id)
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="two"))
    (taken,) = await worker.fetch(1, wait=WAIT)

    assert entry.letter.payload == taken.message.body == body
    assert taken.message.headers == (("colour", b"\xff"),)


async def test_fields_that_are_too_large_together_die_and_come_back(
    small_redis: RedisServer, connect: Callable[[str], RedisBroker], queue: str
) -> None:
    broker = connect(small_redis.url + "?payload=*")
    sent = {"one": b"\xff" * MIB, "two": b"2" * MIB}
    with redis.Redis.from_url(small_redis.url) as client:
        client.xadd(queue, {**sent})
        worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
        (taken,) = await worker.fetch(1, wait=WAIT)
        message = taken.message
        dlq = broker.dead_letters(queue)
        await dlq.send(replace(letter(queue, payload=message.body), group="", headers=message.headers))
        (entry,) = await dlq.peek()
        await dlq.redrive(entry.entry_id)
        fields = client.xrange(queue)[1][1]

    assert (entry.letter.payload, entry.letter.headers) == (message.body, message.headers)
    assert {name.encode(): fields[name.encode()] for name in sent} == {name.encode(): sent[name] for name in sent}


@pytest.mark.parametrize("payload", ["data", "*"])
async def test_a_dlq_is_read_the_same_whatever_the_queue_calls_its_payload(
    broker: RedisBroker, connect: Callable[[str], RedisBroker], redis_url: str, queue: str, payload: str
) -> None:
    await broker.dead_letters(queue).send(letter(queue))
    other = connect(f"{redis_url}?payload={payload}")
    collector = await other.subscribe(f"{queue}:dlq", group="collector", options=Options(owner="one"))
    (taken,) = await collector.fetch(1, wait=WAIT)

    assert [entry.letter.payload for entry in await other.dead_letters(queue).peek()] == [b'{"id": 1}']
    assert taken.message.body == b'{"id": 1}'


async def test_a_message_goes_back_under_the_name_that_its_queue_gives_the_payload(
    connect: Callable[[str], RedisBroker], client: Any, redis_url: str, queue: str
) -> None:
    broker = connect(f"{redis_url}?payload=data")
    await broker.publish(f"{queue}:dlq", [Message("", queue, b"1", (("colour", b"red"),))])
    (entry,) = await broker.dead_letters(queue).peek()
    await broker.dead_letters(queue).redrive(entry.entry_id)
    ((_, fields),) = client.xrange(queue)

    assert (fields[b"data"], fields[b"colour"]) == (b"1", b"red")


def test_a_wrapped_handler_leaves_its_letters_on_redis_from_any_loop(
    redis_url: str, queue: str, client: redis.Redis
) -> None:
    letters = redrive.RedisDeadLetterQueue(redis_url)

    @redrive.dead_letter(letters, source=queue, retry=0)
    async def charge(_: bytes) -> None:
        raise redrive.GiveUp("no customer", code="E7")

    for body in (b"1", b"2"):
        asyncio.run(charge(body))
    found: Any = client.xrange(f"{queue}:dlq")
    asyncio.run(letters.aclose())

    assert [fields[b"payload"] for _, fields in found] == [b"1", b"2"]
    assert {fields[b"error_code"] for _, fields in found} == {b"E7"}
