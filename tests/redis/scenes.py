"""Workers with a message in hand, and what somebody else does to its stream."""

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

from redrive.brokers.redis import RedisBroker
from redrive.core.delivery import Delivery
from redrive.core.message import Message
from redrive.core.place import DeadLetterPlace
from redrive.core.ports import Options, Subscription

SOON = timedelta(milliseconds=1)
WAIT = timedelta(seconds=1)
LATER = timedelta(hours=1)
HOLD = DeadLetterPlace(enabled=False, off="hold")


async def join(broker: RedisBroker, queue: str, owner: str = "one", **options: Any) -> Subscription:
    return await broker.subscribe(queue, group="shop", options=Options(owner=owner, **options))


async def begin(broker: RedisBroker, queue: str, owner: str = "one", **options: Any) -> tuple[Subscription, Delivery]:
    """A worker with one message in hand."""
    worker = await join(broker, queue, owner, **options)
    await broker.publish(queue, [Message("", queue, b"1", (("colour", b"\xff"),))])
    (delivery,) = await worker.fetch(1, wait=WAIT)
    return worker, delivery


async def cancel_a_fetch(worker: Subscription) -> None:
    """A fault, after which a worker hands back what it did not hear of."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await worker.fetch(1, wait=WAIT)


def cut_off(client: Any, queue: str) -> None:
    """What a producer does that adds with MAXLEN."""
    client.xtrim(queue, maxlen=0, approximate=False)


async def reasons(broker: RedisBroker, queue: str) -> list[str]:
    return [entry.letter.reason for entry in await broker.dead_letters(queue).peek()]


async def fetch_when_due(worker: Subscription) -> list[Delivery]:
    while True:
        if found := await worker.fetch(1, wait=WAIT):
            return [*found]
