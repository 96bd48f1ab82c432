"""The stream for dead letters: its name, its terms, and what becomes of letters that it does not take."""

import hashlib
from collections.abc import Callable
from datetime import timedelta

import pytest
from nats.aio.client import Client

from redrive.brokers.nats import NatsBroker
from redrive.core.errors import ConfigError
from redrive.core.outcome import Settlement, SettleStatus
from redrive.core.place import DeadLetterPlace
from tests.nats.scenes import ask, begin_stream, bench_on, join, take

Connect = Callable[[str], NatsBroker]


async def test_the_stream_keeps_letters_for_ever_and_knows_them_for_much_longer_than_a_lease(
    broker: NatsBroker, client: Client, queue: str
) -> None:
    await bench_on(broker, queue).given_up(b"1")
    config = (await ask(client, f"STREAM.INFO.{queue}_dlq"))["config"]

    assert (config["storage"], config["discard"], config["max_age"]) == ("file", "new", 0)
    assert config["duplicate_window"] >= timedelta(minutes=30) / timedelta(microseconds=1) * 1000


async def test_retention_and_size_are_those_of_the_url(
    connect: Connect, nats_url: str, client: Client, queue: str
) -> None:
    broker = connect(f"{nats_url}?dlq.max_age=30d&dlq.max_bytes=1000000&dlq.max_msgs=7&dlq.window=2h")
    await bench_on(broker, queue).given_up(b"1")
    config = (await ask(client, f"STREAM.INFO.{queue}_dlq"))["config"]

    assert (config["max_bytes"], config["max_msgs"]) == (1_000_000, 7)
    assert timedelta(microseconds=config["max_age"] // 1000) == timedelta(days=30)
    assert timedelta(microseconds=config["duplicate_window"] // 1000) == timedelta(hours=2)


async def test_a_work_stream_whose_wildcard_covers_the_dlq_is_a_clear_error(
    broker: NatsBroker, client: Client, queue: str
) -> None:
    await begin_stream(client, queue, f"{queue}.>")
    with pytest.raises(ConfigError, match=rf"takes {queue}\.>.*dead letters.*such as 'dead\."):
        await join(broker, f"{queue}.new")

    worker = await join(broker, f"{queue}.new", dlq=DeadLetterPlace(name="dead-{queue}"))
    await client.publish(f"{queue}.new", b"1")
    assert [each.message.body for each in await take(worker, 1)] == [b"1"]


@pytest.mark.parametrize("name", ["", "{topic}.dlq", "two words", "{queue}", "dead.{queue"])
def test_an_invalid_pattern_is_a_config_error_and_no_silent_fallback(name: str) -> None:
    with pytest.raises(ConfigError, match=r"dlq\.name"):
        DeadLetterPlace(name=name)


@pytest.mark.parametrize("name", ["dead.>", "dead.*", "rd.dead", "dead."])
async def test_a_name_that_no_subject_can_have_is_a_config_error(broker: NatsBroker, queue: str, name: str) -> None:
    with pytest.raises(ConfigError):
        await join(broker, queue, dlq=DeadLetterPlace(name=name))


async def test_strict_letters_have_a_subject_each_where_the_server_lets_no_second_one_in(
    connect: Connect, nats_url: str, client: Client, queue: str
) -> None:
    broker = connect(f"{nats_url}?dlq.strict=true")
    (letter,) = await bench_on(broker, queue).given_up(b"1")
    heading = {"Nats-Expected-Last-Subject-Sequence": "0"}
    again = await client.request(f"{queue}.dlq.{letter.letter_id}.0", b"twice", headers=heading)
    letters = broker.dead_letters(queue)
    await letters.send(letter)  # and is not an error

    assert b"wrong last sequence" in again.data
    assert await letters.length() == 1
    assert [entry.letter.payload for entry in await letters.peek()] == [b"1"]


async def test_strict_letters_are_collected_and_sent_back_like_others(
    connect: Connect, nats_url: str, queue: str
) -> None:
    bench = bench_on(connect(f"{nats_url}?dlq.strict=true"), queue)
    await bench.given_up(b"1", b"2")
    first, _ = await bench.dlq.peek()
    await bench.dlq.redrive(first.entry_id)
    collector = await bench.collector()
    (left,) = await take(collector, 1)
    await collector.settle([Settlement(left)])

    assert await bench.dlq.length() == 0
    assert (await bench.counts()) == {"waiting": 1}


async def test_a_letter_that_the_server_refuses_leaves_its_message_and_the_others_alone(
    connect: Connect, nats_url: str, queue: str
) -> None:
    bench = bench_on(connect(f"{nats_url}?dlq.max_msgs=1"), queue)
    worker = await bench.worker()
    await bench.publish(b"1", b"2", b"3")
    first, second, third = await take(worker, 3)
    (done,) = await worker.settle([bench.give_up(first, worker)])
    refused, acked = await worker.settle([bench.give_up(second, worker), Settlement(third)])

    assert (done.status, refused.status, acked.status) == (SettleStatus.DONE, SettleStatus.REFUSED, SettleStatus.DONE)
    assert f"{queue}.dlq" in refused.why
    assert "maximum messages exceeded" in refused.why
    assert await bench.counts() == {"in_flight": 1, "dead": 1}


async def test_a_message_as_large_as_the_server_takes_can_be_given_up_and_sent_back(
    broker: NatsBroker, client: Client, queue: str
) -> None:
    """A letter with its fields is larger than the limit: sent as it is, the server would cut the connection."""
    bench = bench_on(broker, queue)
    worker = await bench.worker()
    body = b"\xff" * client.max_payload
    await client.request(queue, body, timeout=10)
    before = (await broker._office.link.client()).client_id  # noqa: SLF001
    (delivery,) = await take(worker, 1)
    (answer,) = await worker.settle([bench.give_up(delivery, worker)])
    (entry,) = await bench.dlq.peek()
    await bench.dlq.redrive(entry.entry_id)
    (redriven,) = await take(worker, 1)
    (again,) = await worker.settle([bench.give_up(redriven, worker)])

    assert (answer.status, again.status) == (SettleStatus.DONE, SettleStatus.DONE)
    assert hashlib.sha256(entry.letter.payload or b"").hexdigest() == hashlib.sha256(body).hexdigest()
    assert (redriven.message.body == body, redriven.generation) == (True, 1)
    assert (await ask(client, f"STREAM.INFO.{queue}", subjects_filter="rd.part.>"))["state"].get("subjects") is None
    assert (await broker._office.link.client()).client_id == before  # noqa: SLF001


async def test_a_collector_takes_a_large_letter_whole_and_leaves_nothing_of_it(
    broker: NatsBroker, client: Client, queue: str
) -> None:
    bench = bench_on(broker, queue)
    worker = await bench.worker()
    body = b"\xff" * client.max_payload
    await client.request(queue, body, timeout=10)
    (delivery,) = await take(worker, 1)
    await worker.settle([bench.give_up(delivery, worker)])
    collector = await bench.collector()
    (letter,) = await take(collector, 1)
    await collector.settle([Settlement(letter)])

    assert letter.message.body == body
    assert (await ask(client, f"STREAM.INFO.{queue}_dlq"))["state"]["messages"] == 0


async def test_publishing_more_than_the_server_takes_is_an_error_and_keeps_the_connection(
    broker: NatsBroker, client: Client, queue: str
) -> None:
    bench = bench_on(broker, queue)
    await bench.worker()
    with pytest.raises(Exception, match="max_payload"):
        await bench.publish(b"small", b"\xff" * (client.max_payload + 1))

    assert await bench.counts() == {}
