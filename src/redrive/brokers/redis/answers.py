"""Answers in Redis."""

from datetime import timedelta

from redrive.brokers.redis.address import Address
from redrive.brokers.redis.server import Server
from redrive.core.ports.answers import KEPT_FOR


class RedisAnswers:
    """The `Answers` on Redis: one key `{prefix}:answer:{id}` for each, which Redis itself forgets."""

    def __init__(self, url: str | Address, *, prefix: str = "redrive", keep: timedelta = KEPT_FOR) -> None:
        self._server = Server(Address.of(url) if isinstance(url, str) else url)
        self._prefix = prefix
        self._keep = max(1, int(keep / timedelta(milliseconds=1)))

    async def put(self, request_id: str, answer: bytes) -> None:
        key = self._key(request_id)
        async with self._server.wire(key) as wire:
            await wire.call("SET", key, answer, "NX", "PX", self._keep)

    async def get(self, request_id: str) -> bytes | None:
        key = self._key(request_id)
        async with self._server.wire(key) as wire:
            found = await wire.call("GET", key)
        return None if found is None else bytes(found)

    async def aclose(self) -> None:
        await self._server.aclose()

    def _key(self, request_id: str) -> str:
        return f"{self._prefix}:answer:{request_id}"
