"""Attempts counted in Redis, for messages of other brokers."""

from datetime import timedelta
from typing import Final

from redrive.brokers.redis.address import Address
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

    async def forget(self, message_id: str) -> None:
        key = self._key(message_id)
        async with self._server.wire(key) as wire:
            await wire.call("DEL", key)

    async def aclose(self) -> None:
        await self._server.aclose()

    def _key(self, message_id: str) -> str:
        return f"{self._prefix}:retry_count:{message_id}"
