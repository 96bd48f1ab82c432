"""What a good engineer would write by hand: consume 500, handle them, commit. The limit, on confluent-kafka."""

from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from benchmarks.load import FAILS, Failed, bodies
from benchmarks.measure import Meter

QUEUE = "orders"
DLQ = "orders.dlq"
GROUP = "shop"
BATCH = 500
ATTEMPTS = 3
PARTITIONS = 4
PATIENCE = 30.0  # seconds


def fill(url: str, messages: int, *, spared: int = 0) -> None:
    """A topic in which so many messages wait, without keys, in all of its partitions."""
    admin = AdminClient({"bootstrap.servers": _servers(url)})
    admin.create_topics([NewTopic(QUEUE, PARTITIONS, 1)])[QUEUE].result(PATIENCE)
    producer = Producer({"bootstrap.servers": _servers(url), "linger.ms": 20, "acks": "all"})
    for number, body in enumerate(bodies(0, messages, spared=spared)):
        producer.produce(QUEUE, body, partition=number % PARTITIONS)
        if number % BATCH == 0:
            while len(producer) > 50 * BATCH:
                producer.poll(0.01)
    assert producer.flush(PATIENCE) == 0


def drain(url: str, messages: int) -> dict[str, Any]:
    """Consume, handle, commit; no retry, no DLQ."""
    consumer = _consumer(url)
    meter = Meter(messages)
    while True:
        batch = consumer.consume(BATCH, timeout=1)
        for message in batch:
            _handle(message.value())
        if batch:
            consumer.commit(asynchronous=False)
        if meter.add(len(batch)):
            break
    _check(consumer, messages)
    consumer.close()
    return meter.result()


def drain_failing(url: str, messages: int, *, dead: int) -> dict[str, Any]:
    """A failed message is written again at once with its count, or to the DLQ, in one transaction with the offsets."""
    admin = AdminClient({"bootstrap.servers": _servers(url)})
    admin.create_topics([NewTopic(DLQ, 1, 1)])[DLQ].result(PATIENCE)
    consumer = _consumer(url)
    producer = Producer({"bootstrap.servers": _servers(url), "transactional.id": "hand"})
    producer.init_transactions(PATIENCE)
    meter = Meter(messages)
    letters = 0
    while True:
        batch = consumer.consume(BATCH, timeout=1)
        failed = [(message, error) for message in batch if (error := _failure(message)) is not None]
        finished = len(batch)
        producer.begin_transaction()
        for message, error in failed:
            attempt = int(dict(message.headers() or ()).get("attempt") or b"1")
            if attempt < ATTEMPTS:
                finished -= 1
                producer.produce(QUEUE, message.value(), message.key(), headers={"attempt": b"%d" % (attempt + 1)})
            else:
                letters += 1
                producer.produce(DLQ, message.value(), message.key(), headers=_letter(message, error))
        offsets = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), PATIENCE)
        producer.commit_transaction(PATIENCE)
        if meter.add(finished):
            break
    assert letters == dead, letters
    consumer.close()
    return meter.result()


def _handle(_body: bytes | None) -> None:
    pass


def _failure(message: Message) -> Exception | None:
    try:
        if FAILS in (message.value() or b""):
            raise Failed("this message always fails")  # noqa: TRY301 - a handler raises
    except Exception as error:  # noqa: BLE001 - whatever a handler raises is its failure
        return error
    return None


def _letter(message: Message, error: Exception) -> dict[str, str | bytes | None]:
    return {
        "origin": f"{message.topic()}-{message.partition()}-{message.offset()}",
        "error_type": type(error).__name__,
        "error_message": str(error),
        "retry_count": str(ATTEMPTS),
        "failed_at": str(message.timestamp()[1]),
    }


def _check(consumer: Consumer, messages: int) -> None:
    """Everything was committed."""
    places = [TopicPartition(QUEUE, number) for number in range(PARTITIONS)]
    committed = sum(place.offset for place in consumer.committed(places, timeout=PATIENCE))
    assert committed == messages, committed


def _consumer(url: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": _servers(url),
            "group.id": GROUP,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([QUEUE])
    return consumer


def _servers(url: str) -> str:
    return url.partition("://")[2]
