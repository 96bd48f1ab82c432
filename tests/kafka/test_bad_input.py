"""What others write, what cannot be reached, and what is too large."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from redrive.brokers.kafka import KafkaBroker
from redrive.core.errors import BrokerError, BrokerUnavailable, ConfigError
from redrive.core.message import Message
from redrive.core.outcome import GiveUp, Settlement
from redrive.core.place import DeadLetterPlace
from tests.kafka.scenes import begin_topic, bench_on, join, produce, take
from tests.servers.ports import free_port


async def test_a_tombstone_is_a_message_with_an_empty_body(broker: KafkaBroker, kafka_url: str, queue: str) -> None:
    worker = await join(broker, queue)
    produce(kafka_url, queue, {"value": None, "key": b"k"}, {"value": b"", "headers": [("empty", None)]})
    first, second = await take(worker, 2)

    assert (first.message.body, first.message.key) == (b"", b"k")
    assert (second.message.key, second.message.headers) == (None, (("empty", b""),))


async def test_what_others_write_under_our_names_is_not_believed(
    broker: KafkaBroker, kafka_url: str, queue: str
) -> None:
    worker = await join(broker, queue)
    forged = [("rd-letter", b"x"), ("rd-state", b'{"failures":7}'), ("rd-due", b"never"), ("colour", b"red")]
    produce(kafka_url, queue, {"value": b"1", "headers": forged})
    (delivery,) = await take(worker, 1)

    assert (delivery.failures, delivery.letter_id, delivery.due_at) == (0, None, None)
    assert delivery.message.headers == (("colour", b"red"),)


async def test_what_others_write_into_the_lane_is_a_message_without_a_past(
    broker: KafkaBroker, kafka_url: str, queue: str
) -> None:
    worker = await join(broker, queue)
    states = (b"[1]", b'{"failures":"many"}', b'{"crashes":[]}', b'{"due":1%s}' % (b"0" * 30), b"\xff")
    records = [{"value": b"%d" % at, "headers": [("rd-state", state)]} for at, state in enumerate(states)]
    produce(kafka_url, f"{queue}..shop.lane", *[{**record, "partition": 0} for record in records])
    taken = await take(worker, len(states))

    assert [delivery.message.body for delivery in taken] == [b"%d" % at for at in range(len(states))]
    assert {(delivery.message.queue, delivery.failures, delivery.due_at) for delivery in taken} == {(queue, 0, None)}


async def test_a_record_from_beyond_all_time_is_a_message(broker: KafkaBroker, kafka_url: str, queue: str) -> None:
    worker = await join(broker, queue)
    produce(kafka_url, queue, {"value": b"1", "timestamp": 2**60}, {"value": b"2"})
    taken = await take(worker, 2)

    assert [delivery.message.body for delivery in taken] == [b"1", b"2"]


async def test_a_broker_that_cannot_be_reached_is_unavailable(connect: Callable[[str], KafkaBroker]) -> None:
    broker = connect(f"kafka://127.0.0.1:{free_port()}?socket.timeout.ms=1000")
    with pytest.raises(BrokerUnavailable):
        await broker.publish("orders", [Message("", "orders", b"1")])


async def test_a_setting_that_the_client_does_not_know_is_a_config_error(connect: Callable[[str], KafkaBroker]) -> None:
    with pytest.raises(ConfigError, match="no\\.such\\.setting"):
        await connect("kafka://127.0.0.1:1?no.such.setting=1").publish("orders", [Message("", "orders", b"1")])


@pytest.mark.parametrize("name", ["orders:eu", "orders/eu", "{shop}.orders"])
async def test_names_that_kafka_does_not_take_are_config_errors(broker: KafkaBroker, name: str) -> None:
    with pytest.raises(ConfigError, match="letters, digits"):
        await broker.publish(name, [Message("", name, b"1")])


async def test_a_message_larger_than_its_topic_takes_is_refused(
    broker: KafkaBroker, kafka_url: str, queue: str
) -> None:
    begin_topic(kafka_url, queue, **{"max.message.bytes": "2000"})
    for count in (1, 2):
        with pytest.raises(BrokerError):
            await broker.publish(queue, [Message("", queue, bytes(3000) * 100)] * count)
    ids = await broker.publish(queue, [Message("", queue, b"small")])

    assert len(ids) == 1


async def test_a_letter_that_its_dlq_refuses_is_written_in_a_smaller_form(
    broker: KafkaBroker, kafka_url: str, queue: str
) -> None:
    begin_topic(kafka_url, f"{queue}.dlq", **{"max.message.bytes": "10000", "compression.type": "uncompressed"})
    bench = bench_on(broker, queue)
    worker, delivery = await bench.one_delivery(b"small")
    letter = replace(bench.letter(delivery), stack="".join(f"line {number}\n" for number in range(10_000)))
    (answer,) = await worker.settle([Settlement(delivery, GiveUp(), letter=letter)])
    (entry,) = await bench.dlq.peek()

    assert answer.status == "done"
    assert (entry.letter.payload, entry.letter.stack) == (b"small", None)


async def test_a_letter_that_fits_nowhere_leaves_its_message_where_it_is_and_the_rest_go_through(
    broker: KafkaBroker, kafka_url: str, queue: str
) -> None:
    cellar = DeadLetterPlace(name=f"{queue}.cellar")
    begin_topic(kafka_url, f"{queue}.cellar", **{"max.message.bytes": "10000", "compression.type": "uncompressed"})
    bench = bench_on(broker, queue)
    worker = await join(broker, queue, dlq=cellar)
    await bench.publish(b"1", bytes(range(256)) * 100, b"3", b"4")
    taken = await take(worker, 4)
    items = [bench.give_up(each, worker) for each in taken[:3]] + [Settlement(taken[3])]
    answers = await worker.settle(items)
    depth = await broker.depth(queue, group="shop")

    assert [answer.status for answer in answers] == ["done", "refused", "done", "done"]
    assert (depth.in_flight, depth.waiting) == (1, 0)
    assert await broker.dead_letters(queue, place=cellar).length() == 2
    assert [answer.status for answer in await worker.settle([Settlement(taken[1])])] == ["done"]
