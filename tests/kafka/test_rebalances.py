"""Partitions that stay where they are while a handler runs long, and those that pass to another member."""

import contextlib
from collections.abc import Callable, Sequence

from confluent_kafka import Consumer

from redrive.brokers.kafka import KafkaBroker
from redrive.core.delivery import Delivery
from redrive.core.errors import BrokerUnavailable
from redrive.core.outcome import Settled, SettleStatus
from redrive.core.ports import Subscription
from tests.kafka.scenes import begin_topic, join, produce, server_of, take

IMPATIENT = {"session.timeout.ms": "1000", "max.poll.interval.ms": "1000", "heartbeat.interval.ms": "100"}


async def settle(worker: Subscription, items: Sequence[Delivery]) -> Sequence[Settled]:
    """Settle until an answer comes: in the middle of a rebalance there is none."""
    while True:
        with contextlib.suppress(BrokerUnavailable):
            return await worker.settle(items)


def wait_until_a_silent_reader_is_thrown_out(url: str, topic: str) -> None:
    """Of two members of a group, each as patient as we are, the first reads once and never again."""
    settings = {
        "bootstrap.servers": server_of(url),
        "group.id": f"{topic}-others",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    silent, heir = (Consumer({**settings, **IMPATIENT}) for _ in range(2))
    for member in (silent, heir):
        member.subscribe([topic])
        while (message := member.poll(0.1)) is None or message.error():
            pass
    for member in (heir, silent):
        member.close()


async def test_a_handler_that_runs_for_longer_than_the_group_waits_for_a_reader_keeps_its_partition(
    kafka_url: str, queue: str, connect: Callable[[str], KafkaBroker]
) -> None:
    begin_topic(kafka_url, queue)
    produce(kafka_url, queue, {"value": b"1"})
    broker = connect("&".join([kafka_url, *(f"{name}={value}" for name, value in IMPATIENT.items())]))
    worker = await join(broker, queue)
    (delivery,) = await take(worker, 1)
    for _ in range(2):
        wait_until_a_silent_reader_is_thrown_out(kafka_url, queue)  # nothing of ours runs on this event loop meanwhile
    lost = await worker.extend([delivery])
    (answer,) = await worker.settle([delivery])

    assert list(lost) == []
    assert answer.status is SettleStatus.DONE


async def test_what_is_in_hand_when_its_partition_passes_to_another_is_lost_here_and_runs_there_in_company(
    kafka_url: str, queue: str, connect: Callable[[str], KafkaBroker]
) -> None:
    begin_topic(kafka_url, queue, 2)
    produce(kafka_url, queue, {"value": b"0", "partition": 0}, {"value": b"1", "partition": 1})
    here, there = [await join(connect(kafka_url), queue, owner) for owner in ("one", "two")]
    held = await take(here, 2)
    (moved,) = await take(there, 1)
    answers = {each.message.id: answer.status for each, answer in zip(held, await settle(here, held), strict=True)}
    (done,) = await settle(there, [moved])

    assert sorted(answers.values()) == [SettleStatus.DONE, SettleStatus.LOST]
    assert answers[moved.message.id] is SettleStatus.LOST
    assert (moved.alone, moved.crashes, moved.failures) == (False, 0, 0)
    assert done.status is SettleStatus.DONE
    assert await there.fetch_suspect() is None
