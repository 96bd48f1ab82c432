"""A FastStream consumer of a Redis stream with Redrive's retries and dead letters.

    REDIS_URL=redis://localhost:6379 python examples/faststream_redis.py

It begins the streams `shop-orders`, `shop-orders:dlq` and `shop-orders:outcomes` anew, and leaves them for a look.
"""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from faststream import AckPolicy
from faststream.redis import RedisBroker, StreamSub
from faststream.redis.annotations import RedisStreamMessage
from redis.asyncio import Redis

import redrive

URL = os.environ.get("REDIS_URL", "redis://localhost:6379")
ORDERS, DLQ, OUTCOMES = "shop-orders", "shop-orders:dlq", "shop-orders:outcomes"

# FastStream writes a message and its headers into one field: that is the payload, and goes back byte for byte.
LETTERS = f"{URL}?payload=__data__"

broker = RedisBroker(URL, logger=None)  # type: ignore[arg-type] # None is silence
attempts: Counter[int] = Counter()
no_longer_sold = {3, 4}


def entry(_args: tuple[Any, ...], kwargs: dict[str, Any]) -> redrive.Message:
    """The entry as it stands in the stream. Its id makes an entry that is delivered twice one letter, not two."""
    raw = kwargs["message"].raw_message
    fields = {name.decode(): value for name, value in raw["data"].items()}
    return redrive.Message(raw["message_ids"][0].decode(), ORDERS, fields.pop("__data__"), tuple(fields.items()))


# `MAX_RETRIES = 3` in a loop that counts failures up to three means three attempts, not three more after the first.
policy = redrive.RetryPolicy(max_attempts=3, backoff=redrive.Table([0.05, 0.1]), jitter="none")
keep = redrive.dead_letter(LETTERS, source=ORDERS, retry=policy, message=entry)

fresh = StreamSub(ORDERS, group="shop", consumer="web-1")
# What a handler raised on, or a dead worker left, stays pending, and nobody reads it again but a subscriber like this.
# Its idle time must be longer than all attempts and waits together: a minute, say. Here it is short for you.
pending = StreamSub(ORDERS, group="shop", consumer="web-1", min_idle_time=3_000)


@broker.subscriber(stream=fresh, ack_policy=AckPolicy.NACK_ON_ERROR)
@broker.subscriber(stream=pending, ack_policy=AckPolicy.NACK_ON_ERROR)
@keep
async def charge(order: dict[str, int], message: RedisStreamMessage) -> None:  # noqa: ARG001 - the rule asks for it
    number = order["number"]
    attempts[number] += 1
    if number in no_longer_sold:
        raise redrive.GiveUp(f"order {number}: no longer sold", code="gone")
    if number == 2 and attempts[number] < 3:
        raise ConnectionError("the bank does not answer")
    print(f"order {number}: charged, attempts: {attempts[number]}")


async def main() -> None:
    letters = redrive.connect(LETTERS)
    dead = letters.dead_letters(ORDERS)
    async with broker, Redis.from_url(URL) as redis:
        await redis.delete(ORDERS, DLQ, OUTCOMES)
        await broker.start()
        await refuse_a_letter(redis)
        for number in (1, 2, 3):
            await broker.publish({"number": number}, stream=ORDERS)
        await until(dead.length, 2)

        no_longer_sold.clear()
        for one in await dead.peek():
            print(f"letter: {one.letter.error_message}, attempts: {one.letter.retry_count}")
            await dead.redrive(one.entry_id)
        await until(lambda: redis.xlen(OUTCOMES), 2)
        outcomes: Any = await redis.xrange(OUTCOMES)
        for _, fields in outcomes:
            print(f"did it work? {json.loads(fields[b'payload'])['succeeded']}")
    await letters.aclose()
    await keep.aclose()


async def refuse_a_letter(redis: Any) -> None:
    """No letter, no ack: the order stays pending until its letter can be written."""

    async def tried() -> int:
        return attempts[4]

    await redis.set(DLQ, "no stream, so no letter can be written")
    await broker.publish({"number": 4}, stream=ORDERS)
    await until(tried, 1)
    print(f"order 4: no letter, pending: {(await redis.xpending(ORDERS, 'shop'))['pending']}")
    await redis.delete(DLQ)


async def until(look: Callable[[], Awaitable[int]], count: int) -> None:
    async with asyncio.timeout(60):
        while await look() < count:  # noqa: ASYNC110 - looking is how Redis is asked
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main())
