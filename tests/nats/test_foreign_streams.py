"""Streams that others began, with messages that others write."""

from datetime import timedelta

import pytest
from nats.aio.client import Client

from redrive.brokers.nats import NatsBroker
from redrive.core.errors import ConfigError
from redrive.core.message import Message
from redrive.core.outcome import Settlement
from redrive.core.place import DeadLetterPlace
from tests.nats.scenes import ask, begin_stream, bench_on, join, take

APART = DeadLetterPlace(name="dead-{queue}")


async def test_a_queue_is_a_subject_of_a_stream_that_is_there(broker: NatsBroker, client: Client, queue: str) -> None:
    await begin_stream(client, queue, f"{queue}.>")
    await client.request(f"{queue}.eu", b"1", headers={"colour": "red"})
    await client.request(f"{queue}.us", b"2")
    worker = await join(broker, f"{queue}.eu", dlq=APART)
    (delivery,) = await take(worker, 1)

    assert (delivery.message.body, delivery.message.headers) == (b"1", (("colour", b"red"),))
    assert not await worker.fetch(10, wait=timedelta(0))


async def test_the_subjects_of_a_wildcard_are_listed_once_they_have_messages(
    broker: NatsBroker, client: Client, queue: str
) -> None:
    await begin_stream(client, queue, f"{queue}.>")
    await client.request(f"{queue}.eu", b"1")

    assert [name for name, _ in await broker.queues() if name.startswith(queue)] == [f"{queue}.eu"]


async def test_nothing_of_it_is_changed_or_trimmed(broker: NatsBroker, client: Client, queue: str) -> None:
    await begin_stream(client, queue, f"{queue}.eu")
    before = (await ask(client, f"STREAM.INFO.{queue}"))["config"]
    worker = await join(broker, f"{queue}.eu")
    await client.request(f"{queue}.eu", b"1")
    await worker.settle(await take(worker, 1))
    await worker.heartbeat()
    after = await ask(client, f"STREAM.INFO.{queue}")

    assert after["config"] == before
    assert after["state"]["messages"] == 1


async def test_a_letter_goes_back_by_a_lane_in_a_stream_beside_it(
    broker: NatsBroker, client: Client, queue: str
) -> None:
    await begin_stream(client, queue, f"{queue}.eu")
    bench = bench_on(broker, f"{queue}.eu")
    worker = await bench.worker()
    await client.request(f"{queue}.eu", b"1")
    (delivery,) = await take(worker, 1)
    await worker.settle([bench.give_up(delivery, worker)])
    (entry,) = await bench.dlq.peek()
    await bench.dlq.redrive(entry.entry_id)
    (again,) = await take(worker, 1)
    await worker.settle([bench.retry(again)])
    (third,) = await take(worker, 1)
    await worker.settle([Settlement(third)])

    assert (again.message.body, again.generation, third.failures) == (b"1", 1, 1)
    assert await bench.counts() == {}


async def test_a_work_queue_lets_one_group_have_a_subject(broker: NatsBroker, client: Client, queue: str) -> None:
    await begin_stream(client, queue, queue, retention="workqueue")
    worker = await join(broker, queue)
    await client.request(queue, b"1")
    with pytest.raises(ConfigError, match="one group"):
        await join(broker, queue, group="audit")
    await worker.settle(await take(worker, 1))

    assert (await ask(client, f"STREAM.INFO.{queue}"))["state"]["messages"] == 0


async def test_a_stream_without_direct_reads_is_read_all_the_same(
    broker: NatsBroker, client: Client, queue: str
) -> None:
    await begin_stream(client, f"dead-{queue}", f"{queue}.dlq", allow_direct=False)
    await client.request(f"{queue}.dlq", b'{"id": 1}', headers={"colour": "red"})
    await client.request(f"{queue}.dlq", b"\xff")
    letters = broker.dead_letters(queue)
    first, second = await letters.peek()

    assert (first.letter.payload, first.letter.headers) == (b'{"id": 1}', (("colour", b"red"),))
    assert (second.letter.payload, await letters.length()) == (b"\xff", 2)


async def test_a_delay_that_nobody_would_keep_is_refused(broker: NatsBroker, client: Client, queue: str) -> None:
    await begin_stream(client, queue, queue)
    with pytest.raises(ConfigError, match="allow_msg_schedules"):
        await broker.publish(queue, [Message("", queue, b"1")], delay=timedelta(seconds=5))

    assert (await ask(client, f"STREAM.INFO.{queue}"))["state"]["messages"] == 0


async def test_a_name_that_another_stream_has_is_no_obstacle(broker: NatsBroker, client: Client, queue: str) -> None:
    await begin_stream(client, f"{queue}_eu", f"{queue}.other")
    bench = bench_on(broker, f"{queue}.eu")
    await bench.publish(b"1")

    assert (await take(await bench.worker(), 1))[0].message.body == b"1"
