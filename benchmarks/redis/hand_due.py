"""By hand, and with what ours does to a failed message: it stays with its group, is due later, and keeps its attempts.

Three things that the loop in `hand.py` leaves out, as many do: a message that is added again reaches every group, is
tried at once, and forgets why it failed. Owner checks, crashes and suspects are left out here too.
"""

import json
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import redis.asyncio

from benchmarks import loops
from benchmarks.measure import Meter
from benchmarks.redis.hand import ATTEMPTS, BATCH, DLQ, GROUP, QUEUE, Entry, check, fail_sometimes

DUE = "orders:due"
TRAILS = "orders:trails"
ME = "hand"


class Failure(NamedTuple):
    """A message whose handler raised, and its attempts so far."""

    entry: Entry
    attempts: list[list[Any]]


def drain_failing(url: str, messages: int, *, loop: str, dead: int) -> dict[str, Any]:
    """Read what is new and what is due, handle it, and settle all of it in one transaction."""
    return loops.run(loop, _drain_failing(url, messages, dead=dead))


async def _drain_failing(url: str, messages: int, *, dead: int) -> dict[str, Any]:
    meter, done = Meter(messages), 0
    async with redis.asyncio.Redis.from_url(url) as client:
        while True:
            due, entries, trails = await _take(client)
            failed: list[Failure] = []
            for entry in entries:
                try:
                    await fail_sometimes(entry[1][b"payload"])
                except Exception as error:  # noqa: BLE001 - whatever a handler raises is its failure
                    attempt = [time.time(), type(error).__name__, str(error)]
                    failed.append(Failure(entry, [*trails.get(entry[0], ()), attempt]))
            finished = await _settle(client, due, entries, failed)
            done += finished
            if meter.add(finished):
                break
        assert done == messages, done
        await check(client, dead=dead)
        assert not await client.exists(DUE, TRAILS)
    return meter.result()


async def _take(client: Any) -> tuple[Sequence[bytes], Sequence[Entry], dict[bytes, list[list[Any]]]]:
    """What is due, with its attempts, and as many new ones as there is room for."""
    due = await client.zrangebyscore(DUE, "-inf", time.time(), start=0, num=BATCH)
    async with client.pipeline(transaction=False) as pipeline:
        if due:
            pipeline.xclaim(QUEUE, GROUP, ME, 0, due)
            pipeline.hmget(TRAILS, due)
        if len(due) < BATCH:
            pipeline.xreadgroup(GROUP, ME, {QUEUE: ">"}, count=BATCH - len(due))
        answers = await pipeline.execute()
    entries: list[Entry] = []
    trails: dict[bytes, list[list[Any]]] = {}
    if due:
        claimed, kept, *answers = answers
        entries += claimed
        trails = {entry_id: json.loads(trail) for entry_id, trail in zip(due, kept, strict=True)}
    for _, fresh in answers[0] if answers else ():
        entries += fresh
    return due, entries, trails


async def _settle(client: Any, due: Sequence[bytes], entries: Sequence[Entry], failed: Sequence[Failure]) -> int:
    """Carry out what became of these entries; how many of them are finished: handled, or dead."""
    again = {one.entry[0]: one.attempts for one in failed if len(one.attempts) < ATTEMPTS}
    finished = [entry_id for entry_id, _ in entries if entry_id not in again]
    async with client.pipeline(transaction=True) as pipeline:
        for entry, attempts in failed:
            if len(attempts) >= ATTEMPTS:
                pipeline.xadd(DLQ, _letter(entry, attempts))
        if due:
            pipeline.zrem(DUE, *due)
            pipeline.hdel(TRAILS, *due)
        if again:
            pipeline.zadd(DUE, dict.fromkeys(again, time.time()))
            pipeline.hset(TRAILS, mapping={entry_id: json.dumps(attempts) for entry_id, attempts in again.items()})
        if finished:
            pipeline.xack(QUEUE, GROUP, *finished)
        await pipeline.execute()
    return len(finished)


def _letter(entry: Entry, attempts: list[list[Any]]) -> dict[str, Any]:
    at, error_type, error_message = attempts[-1]
    return {
        "payload": entry[1][b"payload"],
        "original_message_id": entry[0],
        "error_type": error_type,
        "error_message": error_message,
        "retry_count": len(attempts),
        "attempts": json.dumps(attempts),
        "failed_at": at,
    }
