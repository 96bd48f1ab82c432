"""Where groups begin."""

from confluent_kafka import Consumer, TopicPartition

from redrive.brokers.kafka import KafkaBroker
from redrive.core.duration import NOW
from redrive.core.message import Message
from tests.kafka.scenes import join, server_of, take


async def test_a_consumer_group_that_has_read_the_topic_is_taken_over_where_it_stands(
    broker: KafkaBroker, kafka_url: str, queue: str
) -> None:
    await broker.publish(queue, [Message("", queue, b"%d" % number) for number in range(4)])
    old = Consumer({"bootstrap.servers": server_of(kafka_url), "group.id": "shop"})
    old.commit(offsets=[TopicPartition(queue, 0, 3)], asynchronous=False)
    old.close()
    worker = await join(broker, queue)
    (taken,) = await take(worker, 1)

    assert taken.message.body == b"3"
    assert not await worker.fetch(10, wait=NOW)


async def test_private_topics_are_no_queues(broker: KafkaBroker, queue: str) -> None:
    await (await join(broker, queue)).heartbeat()
    listed = [(name, group) for name, group in await broker.queues() if name.startswith(queue)]

    assert listed == [(queue, "shop")]
    assert not [name for name, _ in await broker.queues() if ".." in name or name.startswith("__")]


async def test_a_worker_that_never_fetches_holds_no_partition(broker: KafkaBroker, kafka_url: str, queue: str) -> None:
    """As the process that runs suspects."""
    idle = await join(broker, queue, "idle")
    await idle.heartbeat()
    assert await idle.fetch_suspect() is None
    other = KafkaBroker(kafka_url, clock=broker._office.clock)  # noqa: SLF001
    try:
        worker = await join(other, queue, "other")
        await broker.publish(queue, [Message("", queue, b"1")])
        assert len(await take(worker, 1)) == 1
    finally:
        await other.aclose()
