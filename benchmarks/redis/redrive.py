"""Redrive on Redis, on the event loop that it is told; the backlog was written by others with plain XADD."""

import asyncio
from typing import Any

import redis.asyncio

from benchmarks import loops, low_load, redrive
from benchmarks.redis import hand


def drain(url: str, messages: int, *, loop: str, tracing: bool = False) -> dict[str, Any]:
    loops.choose(loop)
    answer = redrive.drain(url, messages, tracing=tracing)
    asyncio.run(_check(url, dead=0))
    return answer


def drain_typed(url: str, messages: int, *, loop: str) -> dict[str, Any]:
    loops.choose(loop)
    answer = redrive.drain_typed(url, messages)
    asyncio.run(_check(url, dead=0))
    return answer


def drain_failing(url: str, messages: int, *, loop: str, dead: int, log_level: str) -> dict[str, Any]:
    loops.choose(loop)
    answer = redrive.drain_failing(url, messages, log_level=log_level, dead=dead)
    asyncio.run(_check(url, dead=dead))
    return answer


def wait_for_handler(url: str, messages: int, *, loop: str) -> dict[str, Any]:
    return low_load.wait_for_handler(url, messages, publisher=f"{hand.__name__}:publish", loop=loops.choose(loop))


def wait_for_retry(url: str, messages: int, *, loop: str) -> dict[str, Any]:
    return low_load.wait_for_retry(url, messages, loop=loops.choose(loop))


async def _check(url: str, *, dead: int) -> None:
    async with redis.asyncio.Redis.from_url(url) as client:
        await hand.check(client, dead=dead)
