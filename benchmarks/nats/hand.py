"""What a good engineer would write by hand: fetch 500, handle them, ack them. The limit, on nats-py.

The acknowledgement is the same as Redrive's: a word for each message, and an answer to the last of a batch.
"""

import asyncio
from typing import Any

import nats
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig

from benchmarks import loops
from benchmarks.load import FAILS, Failed, bodies
from benchmarks.measure import Meter

QUEUE = "orders"
GROUP = "shop"
DLQ = "orders_dlq"
ATTEMPTS = 3
BATCH = 500
PATIENCE = 60.0  # seconds


def fill(url: str, messages: int, *, spared: int = 0) -> None:
    """A stream in which so many messages wait."""
    asyncio.run(_fill(url, messages, spared=spared))


def drain(url: str, messages: int, *, loop: str) -> dict[str, Any]:
    """Fetch, handle, ack; no retry, no DLQ."""
    return loops.run(loop, _drain(url, messages))


def drain_failing(url: str, messages: int, *, loop: str, dead: int) -> dict[str, Any]:
    """A failed message is handed back at once; the third time it goes to the DLQ, confirmed, and is acked."""
    return loops.run(loop, _drain_failing(url, messages, dead=dead))


async def _handle(_body: bytes) -> None:
    pass


async def _fail_sometimes(body: bytes) -> None:
    if FAILS in body:
        raise Failed("this message always fails")


async def _fill(url: str, messages: int, *, spared: int) -> None:
    client = await nats.connect(url)
    stream = client.jetstream()
    await stream.add_stream(StreamConfig(name=QUEUE, subjects=[QUEUE], allow_direct=True))
    for first in range(0, messages, BATCH):
        for body in bodies(first, min(BATCH, messages - first), spared=spared):
            await client.publish(QUEUE, body)
        await client.flush()
    async with asyncio.timeout(PATIENCE):
        while (await stream.stream_info(QUEUE)).state.messages < messages:  # noqa: ASYNC110 - the server's event
            await asyncio.sleep(0.01)
    await client.close()


async def _drain(url: str, messages: int) -> dict[str, Any]:
    meter = Meter(messages)
    client = await nats.connect(url)
    pull = await _pull(client.jetstream())
    while True:
        batch = await pull.fetch(BATCH, timeout=5)
        for message in batch:
            await _handle(message.data)
        for message in batch[:-1]:
            await message.ack()
        await batch[-1].ack_sync()
        if meter.add(len(batch)):
            break
    await _check(pull)
    await client.close()
    return meter.result()


async def _drain_failing(url: str, messages: int, *, dead: int) -> dict[str, Any]:
    meter = Meter(messages)
    client = await nats.connect(url)
    stream = client.jetstream()
    await stream.add_stream(StreamConfig(name=DLQ, subjects=[f"{QUEUE}.dlq"]))
    pull = await _pull(stream)
    while True:
        batch = await pull.fetch(BATCH, timeout=5)
        failed: list[tuple[Msg, Exception]] = []
        for message in batch:
            try:
                await _fail_sometimes(message.data)
            except Exception as error:  # noqa: BLE001 - whatever a handler raises is its failure
                failed.append((message, error))
        if meter.add(await _settle(stream, batch, failed)):
            break
    await _check(pull)
    assert (await stream.stream_info(DLQ)).state.messages == dead
    await client.close()
    return meter.result()


async def _settle(stream: JetStreamContext, batch: list[Msg], failed: list[tuple[Msg, Exception]]) -> int:
    """Letters first, then a word for each, the last with an answer; how many are done with."""
    over = [(message, error) for message, error in failed if message.metadata.num_delivered >= ATTEMPTS]
    await asyncio.gather(*[_bury(stream, message, error) for message, error in over])
    again = {id(message) for message, _ in failed} - {id(message) for message, _ in over}
    done = [message for message in batch if id(message) not in again]
    for message in batch:
        if id(message) in again:
            await message.nak()
    for message in done[:-1]:
        await message.ack()
    if done:
        await done[-1].ack_sync()
    return len(done)


async def _bury(stream: JetStreamContext, message: Msg, error: Exception) -> None:
    told = {"error_type": type(error).__name__, "error_message": str(error), "retry_count": str(ATTEMPTS)}
    origin = f"{QUEUE}:{message.metadata.sequence.stream}"
    await stream.publish(f"{QUEUE}.dlq", message.data, headers={"Nats-Msg-Id": origin, **told}, timeout=PATIENCE)


async def _pull(stream: JetStreamContext) -> JetStreamContext.PullSubscription:
    config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, max_deliver=-1, max_ack_pending=-1)
    return await stream.pull_subscribe(QUEUE, durable=GROUP, stream=QUEUE, config=config)


async def _check(pull: JetStreamContext.PullSubscription) -> None:
    info = await pull.consumer_info()
    assert (info.num_pending, info.num_ack_pending) == (0, 0), info
