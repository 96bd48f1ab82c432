"""Letters on their way back: once, whole, and in one step."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from redrive.brokers.redis import RedisBroker
from redrive.brokers.redis.keys import QueueKeys
from redrive.core.errors import BrokerError, LetterNotFound
from redrive.core.marks import Marks, read_marks
from redrive.core.ports import Options
from redrive.core.redrive import SendBack

FieldsIn = Callable[[str], list[list[bytes]]]

MANY = tuple((f"header-{number}", b"%d" % number) for number in range(4_500))
WAIT = timedelta(seconds=5)
SEED = {
    "original_message_id": "1700000000000-0",
    "payload": '{"id": 1}',
    "error_type": "ValueError",
    "error_message": "no",
    "retry_count": "3",
    "failed_at": "2024-05-01T12:00:00",
    "user_id": "u7",
}


def item(queue: str, *, group: str | None = "shop") -> SendBack:
    return SendBack("a1", 1, queue, b"\x00\xff", (("colour", b"\xff"),), b"k", group=group, origin="1-1")


@pytest.mark.parametrize("group", ["shop", None])
async def test_thousands_of_headers_go_back(broker: RedisBroker, queue: str, group: str | None) -> None:
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    sent = await broker.send_back([replace(item(queue, group=group), headers=MANY)])
    (taken,) = await worker.fetch(1, wait=WAIT)

    assert ([taken.message.id], taken.message.body, taken.message.headers) == (sent, b"\x00\xff", MANY)


async def test_in_the_queue_the_marks_are_for_consumers_of_other_frameworks(
    broker: RedisBroker, fields_in: FieldsIn, queue: str
) -> None:
    await broker.send_back([replace(item(queue, group=None), attempts_allowed=1)])
    ((_, _, *rest),) = fields_in(queue)
    headers = tuple((name.decode(), value) for name, value in zip(rest[::2], rest[1::2], strict=True))

    assert read_marks(headers, queue=queue) == Marks("a1", 1, 1, "1-1")


async def test_without_marks_the_queue_gets_the_fields_as_they_were(
    broker: RedisBroker, fields_in: FieldsIn, queue: str
) -> None:
    headers = (("colour", b"\xff"), ("rd-payload-at", b"here"))
    await broker.send_back([SendBack("a1", 1, queue, b"1", headers, marked=False)])

    assert fields_in(queue) == [[b"colour", b"\xff", b"payload", b"1"]]


@pytest.mark.parametrize("group", ["shop", None])
async def test_nothing_is_left_of_a_second_send(
    broker: RedisBroker, client: Any, queue: str, group: str | None
) -> None:
    first = await broker.send_back([item(queue, group=group)])
    again = await broker.send_back([item(queue, group=group), item(queue, group=group)])
    stream = QueueKeys(queue).group("shop").lane if group else queue

    assert again == [*first, *first]
    assert client.xlen(stream) == 1
    assert 6 * 86400 < client.ttl(QueueKeys(queue).once_back("a1:1")) <= 7 * 86400


async def test_letters_of_several_queues_come_back_in_their_order(broker: RedisBroker, queue: str) -> None:
    other = f"{queue}-other"
    items = [replace(item(name), letter_id=f"a{place}") for place, name in enumerate([queue, other, queue])]
    ids = await broker.send_back(items)

    assert [*await broker.send_back(items)] == ids
    assert [(await broker.depth(name, group="shop")).waiting for name in (queue, other)] == [2, 1]


async def test_a_group_that_nobody_has_joined_yet_gets_what_is_sent_back(broker: RedisBroker, queue: str) -> None:
    await broker.send_back([item(queue)])

    assert (queue, "shop") in await broker.queues()
    assert (await broker.depth(queue, group="shop")).waiting == 1


async def test_a_lane_that_cannot_be_written_keeps_the_letter_where_it_is(
    broker: RedisBroker, client: Any, queue: str
) -> None:
    await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    client.xadd(f"{queue}:dlq", {**SEED, "letter_id": "a1", "queue": queue, "group": "shop"})
    (entry,) = await broker.dead_letters(queue).peek()
    lane = QueueKeys(queue).group("shop").lane
    client.delete(lane)
    client.set(lane, "something else")
    with pytest.raises(BrokerError, match="holds something other"):
        await broker.dead_letters(queue).redrive(entry.entry_id)

    assert await broker.dead_letters(queue).length() == 1
    assert client.exists(QueueKeys(queue).once_back("a1:1")) == 0


async def test_a_dead_letter_of_somebody_else_is_read_and_goes_to_the_queue(
    broker: RedisBroker, client: Any, fields_in: FieldsIn, queue: str
) -> None:
    client.xadd(f"{queue}:dlq", {**SEED, "colour": "red"})
    (entry,) = await broker.dead_letters(queue).peek()
    await broker.dead_letters(queue).redrive(entry.entry_id)
    (fields,) = fields_in(queue)

    letter = entry.letter
    assert (letter.payload, letter.original_message_id, letter.error_type) == (
        b'{"id": 1}',
        "1700000000000-0",
        "ValueError",
    )
    assert (letter.error_message, letter.retry_count, letter.user_id) == ("no", 3, "u7")
    assert (letter.group, letter.generation) == ("", 0)
    assert fields[fields.index(b"payload") + 1] == b'{"id": 1}'
    assert fields[fields.index(b"colour") + 1] == b"red"


async def test_an_entry_without_a_payload_field_goes_back_field_by_field(
    broker: RedisBroker, client: Any, fields_in: FieldsIn, queue: str
) -> None:
    raw = {b"id": b"7", b"raw": b"\xff\x00", b"note": b"x"}
    client.xadd(f"{queue}:dlq", {name.decode(): value for name, value in raw.items()})
    (entry,) = await broker.dead_letters(queue).peek()
    await broker.dead_letters(queue).redrive(entry.entry_id)
    (fields,) = fields_in(queue)

    assert fields[:6] == [part for pair in raw.items() for part in pair]


async def test_a_letter_that_was_sent_back_before_is_only_taken_from_the_dlq(
    broker: RedisBroker, client: Any, queue: str
) -> None:
    client.xadd(f"{queue}:dlq", {**SEED, "letter_id": "a1", "queue": queue, "group": "shop"})
    (sent,) = await broker.send_back([item(queue)])
    dlq = broker.dead_letters(queue)
    (entry,) = await dlq.peek()

    assert await dlq.redrive(entry.entry_id) == sent
    assert (await dlq.length(), (await broker.depth(queue, group="shop")).waiting) == (0, 1)


async def test_of_many_who_redrive_one_entry_one_has_moved_it(broker: RedisBroker, client: Any, queue: str) -> None:
    client.xadd(f"{queue}:dlq", {**SEED})
    dlq = broker.dead_letters(queue)
    (entry,) = await dlq.peek()
    answers = await asyncio.gather(*(dlq.redrive(entry.entry_id) for _ in range(8)), return_exceptions=True)

    assert Counter(map(type, answers)) == {str: 1, LetterNotFound: 7}
    assert (client.xlen(queue), await dlq.length()) == (1, 0)


@pytest.mark.parametrize("group", ["shop", None])
async def test_hundreds_of_letters_go_back_in_order_and_once(
    broker: RedisBroker, queue: str, client: Any, group: str | None
) -> None:
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    items = [replace(item(queue, group=group), letter_id=f"a{n}", body=b"%d" % n) for n in range(500)]
    client.script_flush()
    sent = await broker.send_back(items)
    client.script_flush()  # as after a failover: what was added must be judged all the same
    again = await broker.send_back(items)
    found: list[bytes] = []
    while len(found) < 500:
        found += [delivery.message.body for delivery in await worker.fetch(500, wait=WAIT)]

    assert again == sent
    assert len({*sent}) == 500
    assert found == [one.body for one in items]
    assert (await broker.depth(queue, group="shop")).waiting == 0
