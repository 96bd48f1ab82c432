"""Queues, at a service."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from msgspec import convert

from redrive.cli.at_service.client import Client, flags_named
from redrive.cli.at_service.reading import Said
from redrive.core.ports import Alive, Depth
from redrive.triage.queues import QueueRow


class QueuesThere:
    """`clerk.Queues` at a service, of all its brokers, or of the one that is named."""

    def __init__(self, client: Client, *, broker: str | None) -> None:
        self._client = client
        self._broker = broker

    async def list(self, *, everything: bool) -> Sequence[QueueRow]:
        given = {"all": everything or None}
        rows = await self._client.get("/queues", given, read=lambda said: [_row(one) for one in said])
        return [row for row in rows if self._broker in (None, row.broker)]

    async def pause(self, queue: str, *, group: str | None, why: str) -> tuple[str, str]:
        row = await self._change("pause", queue, group=group, why=why)
        return row.group, row.paused or why

    async def resume(self, queue: str, *, group: str | None) -> str:
        return (await self._change("resume", queue, group=group)).group

    async def release(self, queue: str, *, group: str | None) -> tuple[str, int]:
        with flags_named():
            return await self._client.post("/queues/release", self._lane(queue, group), read=_released)

    async def _change(self, verb: str, queue: str, *, group: str | None, **more: Any) -> QueueRow:
        with flags_named():
            return await self._client.post(f"/queues/{verb}", {**self._lane(queue, group), **more}, read=_row)

    def _lane(self, queue: str, group: str | None) -> dict[str, Any]:
        return {"queue": queue, "group": group, "broker": self._broker}


def _row(said: Said) -> QueueRow:
    age = said["oldest_age_seconds"]
    return QueueRow(
        broker=said["broker"],
        queue=said["queue"],
        group=said["group"],
        depth=None if said["waiting"] is None else convert(said, Depth),
        workers=convert(said["workers"], list[Alive]),
        paused=said["paused"],
        oldest_age=None if age is None else timedelta(seconds=age),
        trouble=said["trouble"],
    )


def _released(said: Said) -> tuple[str, int]:
    return str(said["group"]), int(said["released"])
