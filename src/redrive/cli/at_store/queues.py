"""Queues, at a broker that the command connects to itself."""

from collections.abc import Sequence
from datetime import UTC, datetime

from redrive.cli.target import group_of
from redrive.core.ports import Broker
from redrive.triage.queues import QueueRow, lanes_of, look


class QueuesHere:
    """`clerk.Queues` at a broker. Without a store nothing goes on record."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def list(self, *, everything: bool) -> Sequence[QueueRow]:
        lanes = await lanes_of(self._broker, everything=everything)
        return [await look(self._broker, queue, group, now=datetime.now(UTC)) for queue, group in lanes]

    async def pause(self, queue: str, *, group: str | None, why: str) -> tuple[str, str]:
        why = why or "paused by a person"
        return await self._pause(queue, group=group, why=why), why

    async def resume(self, queue: str, *, group: str | None) -> str:
        return await self._pause(queue, group=group, why=None)

    async def release(self, queue: str, *, group: str | None) -> tuple[str, int]:
        group = await group_of(self._broker, queue, group=group)
        return group, await self._broker.free(queue, group=group)

    async def _pause(self, queue: str, *, group: str | None, why: str | None) -> str:
        group = await group_of(self._broker, queue, group=group)
        await self._broker.pause(queue, group=group, why=why)
        return group
