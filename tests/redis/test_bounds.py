"""Servers that are full, arguments that are too large, entries of thousands of fields: the work goes on."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from redrive.brokers.redis import RedisBroker
from redrive.core.errors import BrokerError, BrokerUnavailable
from redrive.core.message import Headers, Message
from redrive.core.outcome import GiveUp, RetryLater, Settlement, SettleStatus
from redrive.core.ports import Obituary, Options
from tests.redis.letters import letter
from tests.servers.redis import RedisServer

Connect = Callable[[str], RedisBroker]

NOW = timedelta()
WAIT = timedelta(seconds=1)
LIMIT = 1024 * 1024


def many(count: int) -> Headers:
    return tuple([(f"h{number}", b"%d" % number) for number in range(count)])


@pytest.fixture
def small_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that takes no argument of more than a mebibyte."""
    with RedisServer(tmp_path / "redis", {"proto-max-bulk-len": "1mb"}) as server:
        yield server


async def test_a_full_server_can_be_worked_empty(fresh_redis: RedisServer, connect: Connect) -> None:
    broker = connect(fresh_redis.url)
    first = await broker.subscribe("orders", group="shop", options=Options(owner="one"))
    await broker.publish("orders", [Message("", "orders", b"%d" % number) for number in range(6)])
    await broker.publish("orders", [Message("", "orders", b"late")], delay=timedelta(milliseconds=1))
    (suspect,) = await first.fetch(1, wait=WAIT)
    fresh_redis.ask("CONFIG", "SET", "maxmemory", "1mb")
    with pytest.raises(BrokerUnavailable, match="maxmemory"):
        await broker.publish("orders", [Message("", "orders", b"1")])
    options = Options(owner="two", obituary=Obituary("one", "killed"))
    worker = await broker.subscribe("orders", group="shop", options=options)
    alone = await worker.fetch_suspect()
    assert alone is not None
    await worker.settle([Settlement(alone)])
    bodies: list[bytes] = []
    while len(bodies) < 6:
        for delivery in await worker.fetch(1, wait=WAIT):
            await worker.extend([delivery])
            outcome = RetryLater(NOW) if not delivery.failures else GiveUp("no")
            (answer,) = await worker.settle([Settlement(delivery, outcome, letter=letter("orders"))])
            assert answer.status is SettleStatus.DONE
            bodies += [delivery.message.body] if delivery.failures else []
    await worker.heartbeat()
    depth = await broker.depth("orders", group="shop")

    assert (alone.message.id, sorted(bodies)) == (suspect.message.id, [b"1", b"2", b"3", b"4", b"5", b"late"])
    assert (depth.waiting, depth.in_flight, depth.scheduled, depth.dead) == (0, 0, 0, 6)
    assert fresh_redis.ask("XLEN", "orders") == 0


@pytest.mark.parametrize("byte", [b"x", b"\x00", b"\xff"], ids=["text", "control", "binary"])
@pytest.mark.parametrize("size", [LIMIT - 1, LIMIT], ids=["below", "at"])
@pytest.mark.parametrize("entry", ["there", "trimmed"])
async def test_a_payload_at_the_limit_is_retried_dies_and_comes_back(
    entry: str, size: int, byte: bytes, small_redis: RedisServer, connect: Connect
) -> None:
    broker, body = connect(small_redis.url), byte * size
    worker = await broker.subscribe("orders", group="shop", options=Options(owner="one"))
    await broker.publish("orders", [Message("", "orders", body)])
    (first,) = await worker.fetch(1, wait=WAIT)
    if entry == "trimmed":
        small_redis.ask("XTRIM", "orders", "MAXLEN", 0)
        await worker.extend([first])
    await worker.settle([Settlement(first, RetryLater(NOW))])
    (second,) = await worker.fetch(1, wait=WAIT)
    await worker.release([second])
    (third,) = await worker.fetch(1, wait=WAIT)
    dead = letter("orders", payload=third.message.body)
    await worker.settle([Settlement(third, GiveUp("no"), letter=dead)])
    (found,) = await broker.dead_letters("orders").peek()
    await broker.dead_letters("orders").redrive(found.entry_id)
    (back,) = await worker.fetch(1, wait=WAIT)

    assert {one.message.body for one in (first, second, third, back)} == {body}
    assert (third.failures, back.letter_id) == (1, dead.letter_id)


async def test_a_payload_beyond_the_limit_is_refused_and_nothing_else_suffers(
    small_redis: RedisServer, connect: Connect
) -> None:
    broker, large = connect(small_redis.url), b"x" * (LIMIT + 1)
    worker = await broker.subscribe("orders", group="shop", options=Options(owner="one"))
    for delay in (NOW, WAIT):
        with pytest.raises(BrokerError, match="1048576 bytes") as caught:
            await broker.publish("orders", [Message("", "orders", large)], delay=delay)
        assert not isinstance(caught.value, BrokerUnavailable)
    await broker.publish("orders", [Message("", "orders", b"1")] * 2)
    one, two = await worker.fetch(2, wait=WAIT)
    outputs = [Message("", "paid", large), Message("", "paid", b"1")]
    answers = await worker.settle([Settlement(one, output=outputs[0]), Settlement(two, output=outputs[1])])

    assert [answer.status for answer in answers] == [SettleStatus.REFUSED, SettleStatus.DONE]
    assert small_redis.ask("XLEN", "paid") == 1


@pytest.mark.parametrize("taken", ["paid", "{paid}:redrive"], ids=["the stream", "what is kept about it"])
async def test_an_output_whose_place_is_taken_is_refused_before_anything_is_written(
    taken: str, fresh_redis: RedisServer, connect: Connect
) -> None:
    broker = connect(fresh_redis.url)
    worker = await broker.subscribe("orders", group="shop", options=Options(owner="one"))
    await broker.publish("orders", [Message("", "orders", b"1")] * 2)
    deliveries = await worker.fetch(2, wait=WAIT)
    fresh_redis.ask("SET", taken, "somebody else's")
    outputs = [Message("", "paid", b"1"), Message("", "invoices", b"1")]
    answers = await worker.settle(
        [Settlement(delivery, output=output) for delivery, output in zip(deliveries, outputs, strict=True)]
    )
    await worker.settle([Settlement(deliveries[0])])

    assert [answer.status for answer in answers] == [SettleStatus.REFUSED, SettleStatus.DONE]
    assert answers[0].why.startswith(f"{taken} holds a string")
    assert fresh_redis.ask("TYPE", "paid") == ("string" if taken == "paid" else "none")
    assert fresh_redis.ask("XLEN", "invoices") == 1


@pytest.mark.parametrize("entry", ["there", "trimmed"])
async def test_thousands_of_fields_are_retried_die_and_come_back(
    entry: str, broker: RedisBroker, queue: str, client: Any
) -> None:
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    headers = many(5000)
    await broker.publish(queue, [Message("", queue, b"1", headers)])
    (first,) = await worker.fetch(1, wait=WAIT)
    if entry == "trimmed":
        client.xtrim(queue, maxlen=0, approximate=False)
    await worker.settle([Settlement(first, RetryLater(NOW))])
    (second,) = await worker.fetch(1, wait=WAIT)
    dead = replace(letter(queue), headers=second.message.headers)
    await worker.settle([Settlement(second, GiveUp("no"), letter=dead)])
    (found,) = await broker.dead_letters(queue).peek()
    await broker.dead_letters(queue).redrive(found.entry_id)
    (back,) = await worker.fetch(1, wait=WAIT)

    assert second.message.headers == back.message.headers == headers


# With 3,499 headers, or 3,497 and a delay, an entry has the 7,000 strings that are unpacked at once; then steps of 32.
@pytest.mark.parametrize("count", [3498, 3499, 3500, 3501, 3514, 3515, 3516, 5000, 12_000])
async def test_an_output_of_thousands_of_headers_goes_out_with_the_ack(
    count: int, broker: RedisBroker, queue: str, fields_in: Callable[[str], list[list[bytes]]]
) -> None:
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    await broker.publish(queue, [Message("", queue, b"1")])
    (taken,) = await worker.fetch(1, wait=WAIT)
    output = Message("", f"{queue}-paid", b"1", many(count))
    answers = [*await worker.settle([Settlement(taken, output=output)]), *await worker.settle([Settlement(taken)])]

    assert [answer.status for answer in answers] == [SettleStatus.DONE, SettleStatus.REPEATED]
    (fields,) = fields_in(f"{queue}-paid")
    assert fields == [b"payload", b"1", *(part for name, value in many(count) for part in (name.encode(), value))]


@pytest.mark.parametrize("count", [3496, 3497, 3498, 3499, 3512, 3513, 3514, 5000, 12_000])
async def test_a_delayed_message_of_thousands_of_headers_arrives(count: int, broker: RedisBroker, queue: str) -> None:
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    messages = [Message("", queue, b"1", many(count)), Message("", queue, b"2")]
    ids = await broker.publish(queue, messages, delay=timedelta(milliseconds=1))
    taken: list[Message] = []
    while len(taken) < len(ids):
        taken += [one.message for one in await worker.fetch(2, wait=WAIT)]

    assert {one.id for one in taken} == {*ids}
    assert {one.body: one.headers for one in taken} == {b"1": many(count), b"2": ()}
