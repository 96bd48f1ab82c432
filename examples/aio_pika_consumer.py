"""An aio-pika consumer with Redrive's retries and dead letters.

    RABBITMQ_URL=amqp://guest:guest@localhost:5672/ python examples/aio_pika_consumer.py

It begins the queues `shop-orders`, `shop-orders.dlq` and `shop-orders.outcomes`, and leaves them for a look.
"""

import asyncio
import json
import os
from collections import Counter
from typing import Any

import aio_pika

import redrive

URL = os.environ.get("RABBITMQ_URL", "amqp://guest:guest@localhost:5672/")
ORDERS, OUTCOMES = "shop-orders", "shop-orders.outcomes"

attempts: Counter[int] = Counter()
no_longer_sold = {3}


def message_of(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> redrive.Message:
    """The message as it came. Its id makes a message that is delivered twice one letter, not two."""
    came: aio_pika.abc.AbstractIncomingMessage = args[0]
    headers = tuple((name, str(value).encode()) for name, value in came.headers.items())
    return redrive.Message(came.message_id or "", ORDERS, came.body, headers)


# `MAX_RETRIES = 3` in a loop that counts failures up to three means three attempts, not three more after the first.
policy = redrive.RetryPolicy(max_attempts=3, backoff=redrive.Table([0.05, 0.1]), jitter="none")
keep = redrive.dead_letter(URL, source=ORDERS, retry=policy, message=message_of)


@keep
async def charge(message: aio_pika.abc.AbstractIncomingMessage) -> None:
    number = json.loads(message.body)["number"]
    attempts[number] += 1
    if number in no_longer_sold:
        raise redrive.GiveUp(f"order {number}: no longer sold", code="gone")
    if number == 2 and attempts[number] < 3:
        raise ConnectionError("the bank does not answer")
    print(f"order {number}: charged, attempts: {attempts[number]}")


async def handle(message: aio_pika.abc.AbstractIncomingMessage) -> None:
    """Ack what was done, and what became a letter. What could not become one goes back into the queue."""
    async with message.process(requeue=True):
        await charge(message)


async def main() -> None:
    letters = redrive.connect(URL)
    dead = letters.dead_letters(ORDERS)
    connection = await aio_pika.connect(URL)
    async with connection:
        channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
        await channel.set_qos(prefetch_count=8)
        quorum: dict[str, Any] = {"x-queue-type": "quorum"}
        queue = await channel.declare_queue(ORDERS, durable=True, arguments=quorum)
        outcomes = await channel.declare_queue(OUTCOMES, durable=True, arguments=quorum)
        await queue.consume(handle)
        for number in (1, 2, 3):
            order = aio_pika.Message(
                json.dumps({"number": number}).encode(),
                message_id=f"order-{number}",
                delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            )
            await channel.default_exchange.publish(order, routing_key=ORDERS, mandatory=True)

        entry = await first_of(dead)
        print(f"letter: {entry.letter.error_message}, attempts: {entry.letter.retry_count}")
        no_longer_sold.clear()
        await dead.redrive(entry.entry_id)
        async with asyncio.timeout(60), outcomes.iterator() as told:
            async for outcome in told:
                await outcome.ack()
                print(f"did it work? {json.loads(outcome.body)['succeeded']}")
                break
    await letters.aclose()
    await keep.aclose()


async def first_of(dead: Any) -> Any:
    async with asyncio.timeout(60):
        while not (found := await dead.peek(1)):  # noqa: ASYNC110 - looking is how a queue is asked
            await asyncio.sleep(0.05)
    return found[0]


if __name__ == "__main__":
    asyncio.run(main())
