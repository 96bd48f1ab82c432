"""What a good engineer would write by hand: read 500, handle them, ack them in one call. The limit, on redis-py."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import redis
import redis.asyncio

from benchmarks import loops
from benchmarks.load import FAILS, Failed, bodies
from benchmarks.measure import Meter
from benchmarks.pace import Times, call_apart, moments, since

QUEUE = "orders"
DLQ = "orders:dlq"
GROUP = "shop"
BATCH = 500
ATTEMPTS = 3
BLOCK = 1000  # milliseconds

Entry = tuple[bytes, dict[bytes, bytes]]


def fill(url: str, messages: int, *, spared: int = 0) -> None:
    """A stream in which so many messages wait, and its group."""
    client: Any = redis.Redis.from_url(url)
    client.xgroup_create(QUEUE, GROUP, id="0", mkstream=True)
    for first in range(0, messages, BATCH):
        with client.pipeline(transaction=False) as pipeline:
            for body in bodies(first, min(BATCH, messages - first), spared=spared):
                pipeline.xadd(QUEUE, {"payload": body})
            pipeline.execute()


def drain(url: str, messages: int, *, loop: str) -> dict[str, Any]:
    """Read, handle, ack; no retry, no DLQ."""
    return loops.run(loop, _drain(url, messages))


def drain_failing(url: str, messages: int, *, loop: str, dead: int) -> dict[str, Any]:
    """A failed message is added again at once with its count, or to the DLQ, in one transaction with all acks."""
    return loops.run(loop, _drain_failing(url, messages, dead=dead))


def wait_for_handler(url: str, messages: int, *, loop: str) -> dict[str, Any]:
    """How long after its publishing by another process a message is handled."""
    return loops.run(loop, _wait_for_handler(url, messages))


def publish(url: str, messages: int) -> None:
    """Publish now and then; what both sides of the comparison read."""
    loops.run("asyncio", _publish(url, messages))


async def _handle(_body: bytes) -> None:
    pass


async def fail_sometimes(body: bytes) -> None:
    """The handler where every tenth message fails."""
    if FAILS in body:
        raise Failed("this message always fails")


async def _drain(url: str, messages: int) -> dict[str, Any]:
    meter = Meter(messages)
    async with redis.asyncio.Redis.from_url(url) as client:
        while True:
            entries = await _read(client)
            for _, fields in entries:
                await _handle(fields[b"payload"])
            await client.xack(QUEUE, GROUP, *[entry_id for entry_id, _ in entries])
            if meter.add(len(entries)):
                break
        await check(client, dead=0)
    return meter.result()


async def _drain_failing(url: str, messages: int, *, dead: int) -> dict[str, Any]:
    meter = Meter(messages)
    done = 0
    async with redis.asyncio.Redis.from_url(url) as client:
        while True:
            entries = await _read(client)
            failed: list[tuple[Entry, Exception]] = []
            for entry in entries:
                try:
                    await fail_sometimes(entry[1][b"payload"])
                except Exception as error:  # noqa: BLE001 - whatever a handler raises is its failure
                    failed.append((entry, error))
            finished = await _settle(client, entries, failed)
            done += finished
            if meter.add(finished):
                break
        assert done == messages, done
        await check(client, dead=dead)
    return meter.result()


async def _wait_for_handler(url: str, messages: int) -> dict[str, Any]:
    waited = Times(messages)
    async with redis.asyncio.Redis.from_url(url) as client:
        await client.xgroup_create(QUEUE, GROUP, mkstream=True)
        publisher = asyncio.create_task(call_apart(f"{__name__}:publish", url=url, messages=messages))
        while not waited.complete.is_set():
            entries = await _read(client, block=BLOCK)
            for _, fields in entries:
                waited.note(since(fields[b"payload"]))
            if entries:
                await client.xack(QUEUE, GROUP, *[entry_id for entry_id, _ in entries])
        await publisher
    return {"times": waited}


async def _publish(url: str, messages: int) -> None:
    async with redis.asyncio.Redis.from_url(url) as client:
        async for body in moments(messages):
            await client.xadd(QUEUE, {"payload": body})


async def _read(client: Any, *, block: int | None = None) -> Sequence[Entry]:
    reply = await client.xreadgroup(GROUP, "hand", {QUEUE: ">"}, count=BATCH, block=block)
    for _, entries in reply:
        return entries  # type: ignore[no-any-return] # redis-py's own shape
    return ()


async def _settle(client: Any, entries: Sequence[Entry], failed: Sequence[tuple[Entry, Exception]]) -> int:
    """Carry out what became of these entries; how many of them are finished: handled, or dead."""
    again = 0
    async with client.pipeline(transaction=True) as pipeline:
        for (entry_id, fields), error in failed:
            attempt = int(fields.get(b"attempt", 1))
            if attempt < ATTEMPTS:
                again += 1
                pipeline.xadd(QUEUE, fields | {b"attempt": b"%d" % (attempt + 1)})
            else:
                pipeline.xadd(DLQ, _letter(entry_id, fields, error))
        pipeline.xack(QUEUE, GROUP, *[entry_id for entry_id, _ in entries])
        await pipeline.execute()
    return len(entries) - again


def _letter(entry_id: bytes, fields: dict[bytes, bytes], error: Exception) -> dict[str, Any]:
    return {
        "payload": fields[b"payload"],
        "original_message_id": entry_id,
        "error_type": type(error).__name__,
        "error_message": str(error),
        "retry_count": fields[b"attempt"],
        "failed_at": time.time(),
    }


async def check(client: Any, *, dead: int) -> None:
    """Everything was read, nothing is pending, and the DLQ holds so many different messages."""
    (group,) = await client.xinfo_groups(QUEUE)
    stream = await client.xinfo_stream(QUEUE)
    assert group["last-delivered-id"] == stream["last-generated-id"], group
    assert group["pending"] == 0, group
    letters = await client.xrange(DLQ)
    assert len({fields[b"original_message_id"] for _, fields in letters}) == len(letters) == dead, len(letters)
