"""An aiokafka consumer with Redrive's retries and dead letters.

    KAFKA_SERVERS=localhost:9092 python examples/aiokafka_consumer.py

It writes to the topics `shop-orders`, `shop-orders.dlq` and `shop-orders.outcomes` (TOPIC names another one than
`shop-orders`), and leaves them for a look.
"""

import asyncio
import os
from collections import Counter
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

import redrive

SERVERS = os.environ.get("KAFKA_SERVERS", "localhost:9092")
ORDERS = os.environ.get("TOPIC", "shop-orders")

# What Redrive writes is compressed with snappy, which aiokafka reads only as aiokafka[snappy]; so here it is not.
KAFKA = f"kafka://{SERVERS}?compression.type=none"

attempts: Counter[bytes] = Counter()
no_longer_sold = {b"3"}


def record_of(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> redrive.Message:
    """The record as it stands in the topic. Its place makes a record that is delivered twice one letter, not two."""
    (record,) = args
    place = f"{record.topic}-{record.partition}-{record.offset}"
    return redrive.Message(place, ORDERS, record.value, record.headers, record.key)


# `maxRetriesBeforeDLQ: 3` in a consumer that counts failures up to three means three attempts.
policy = redrive.RetryPolicy(max_attempts=3, backoff=redrive.Table([0.05, 0.1]), jitter="none")
letters = redrive.KafkaDeadLetterQueue(KAFKA)
keep = redrive.dead_letter(letters, source=ORDERS, retry=policy, message=record_of)


@keep
async def charge(record: ConsumerRecord) -> None:
    order = record.value
    attempts[order] += 1
    if order in no_longer_sold:
        raise redrive.GiveUp("no longer sold", code="gone")
    if order == b"2" and attempts[order] < 3:
        raise ConnectionError("the bank does not answer")
    print(f"order {order.decode()}: charged, attempts: {attempts[order]}")


async def consume(consumer: AIOKafkaConsumer, wanted: int) -> None:
    """Commit what was handled or has its letter; whatever has neither is read again."""
    while wanted:
        record = await consumer.getone()
        place = TopicPartition(record.topic, record.partition)
        try:
            await charge(record)
        except redrive.DeadLetterError as refused:
            print(f"no letter, no commit: {refused}")
            consumer.seek(place, record.offset)
            continue
        await consumer.commit({place: record.offset + 1})
        wanted -= 1


async def main() -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=SERVERS)
    await admin.start()
    await admin.create_topics([NewTopic(ORDERS, num_partitions=1, replication_factor=1)])
    await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=SERVERS) as producer:
        for order in (b"1", b"2", b"3"):
            await producer.send_and_wait(ORDERS, order, key=b"ann")

    # read_committed: what Redrive sends back is written in a transaction.
    consumer = AIOKafkaConsumer(
        ORDERS,
        bootstrap_servers=SERVERS,
        group_id="shop",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    kafka = redrive.connect(KAFKA)
    async with consumer:
        await consume(consumer, wanted=3)
        dead = kafka.dead_letters(ORDERS)
        for one in await dead.peek():
            print(f"letter: order {(one.letter.payload or b'').decode()} {one.letter.error_code}")
            no_longer_sold.clear()
            await dead.redrive(one.entry_id)
        await consume(consumer, wanted=1)
    print(f"left: {await dead.length()}")
    await kafka.aclose()
    await keep.aclose()


if __name__ == "__main__":
    asyncio.run(main())
