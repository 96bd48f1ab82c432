"""Attempts counted in Redis, for messages of other brokers."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from redrive.brokers.redis.address import Address
from redrive.brokers.redis.errors import translate
from redrive.brokers.redis.server import Server
from redrive.brokers.redis.transaction import together

KEPT_FOR: Final = timedelta(days=7)


class RedisAttemptCounter:
    """An `AttemptCounter` on Redis: one key `{prefix}:retry_count:{id}` for each message."""

    def __init__(self, url: str, *, prefix: str = "redrive") -> None:
        self._server = Server(Address.of(url))
        self._prefix = prefix

    async def add(self, message_id: str) -> int:
        key = self._key(message_id)
        async with self._server.wire(key) as wire:
            count, _ = await together(wire, [("INCR", key), ("EXPIRE", key, int(KEPT_FOR.total_seconds()))])
        return int(count)

    async def get(self, message_id: str) -> int:
        key = self._key(message_id)
        async with self._server.wire(key) as wire:
            return int(await wire.call("GET", key) or 0)

    async def counts(self, message_ids: Sequence[str]) -> Sequence[int]:
        if not message_ids:
            async with self._server.wire(self._prefix) as wire:
                await wire.call("PING")
            return []
        if self._server.address.scheme == "redis+cluster":  # which server has a key is asked for each
            return await asyncio.gather(*(self.get(message_id) for message_id in message_ids))
        async with self._server.wire(self._prefix) as wire:
            answers = await wire.calls([("GET", self._key(message_id)) for message_id in message_ids])
        for answer in answers:
            if isinstance(answer, Exception):
                raise translate(answer)
        return [int(answer or 0) for answer in answers]

    async def forget(self, message_id: str) -> None:
        key = self._key(message_id)
        async with self._server.wire(key) as wire:
            await wire.call("DEL", key)

    async def aclose(self) -> None:
        await self._server.aclose()

    def _key(self, message_id: str) -> str:
        return f"{self._prefix}:retry_count:{message_id}"
