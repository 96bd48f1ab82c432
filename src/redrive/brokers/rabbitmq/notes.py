"""What may have started: each worker writes down what it hands out, before it does.

RabbitMQ says of a message that comes again that it was delivered before, not whether anybody had begun with it: it may
have been in a socket, or somebody may just have looked at it. The notes of a group say it: a short stream, read only
when something comes again.
"""

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from redrive.brokers.process import identity
from redrive.brokers.rabbitmq.link import Link
from redrive.brokers.rabbitmq.names import Place
from redrive.brokers.rabbitmq.parcel import from_micros, to_micros
from redrive.brokers.rabbitmq.stream import Record, Stream
from redrive.core.ports import Alive, Options

HEARD_OF: Final = timedelta(seconds=30)
NEVER: Final = from_micros(0)
_REACH: Final = timedelta(minutes=5)  # longer than a server needs to notice that a worker is gone
_KEPT: Final[Mapping[str, Any]] = {
    "x-queue-type": "stream",
    "x-max-length-bytes": 8_000_000,
    "x-stream-max-segment-size-bytes": 1_000_000,
}
_KEPT_ALIVE: Final[Mapping[str, Any]] = {
    "x-queue-type": "stream",
    "x-max-age": "1h",
    "x-stream-max-segment-size-bytes": 1_000_000,
}


@dataclass(slots=True)
class Worker:
    """What a worker has said of its work."""

    owner: str
    process: str = ""
    seen_at: datetime = NEVER
    taken: set[str] = field(default_factory=set)
    alone: dict[str, datetime] = field(default_factory=dict)

    def hear(self, record: Record) -> None:
        """Take note of one record."""
        self.seen_at, self.process = from_micros(record["at"]), record["process"]
        kind, keys = record["kind"], record["keys"]
        if kind == "take":
            self.taken.update(keys)
        elif kind == "alone":
            self.alone.update(dict.fromkeys(keys, self.seen_at))
        elif kind == "drop":
            self.taken.difference_update(keys)
            for key in keys:
                self.alone.pop(key, None)
        elif kind == "beat":
            self.taken = set(keys)
            self.alone = {key: self.alone.get(key, self.seen_at) for key in record["alone"]}


class Present(NamedTuple):
    """A worker that beats, its process, and how many messages it had in hand at its last beat."""

    alive: Alive
    process: str
    in_hand: int


class Notes:
    """The notes of one group; and beside them, in a stream of their own, who is at work."""

    def __init__(self, link: Link, place: Place) -> None:
        self._link = link
        self._stream = Stream(link, place.notes, arguments=_KEPT)
        self._alive = Stream(link, place.alive, arguments=_KEPT_ALIVE)

    async def ensure(self) -> None:
        """Begin both streams unless they are there."""
        await self._stream.ensure()
        await self._alive.ensure()

    async def write(self, kind: str, options: Options, *, keys: Iterable[str] = (), **more: object) -> None:
        """Write down what a worker does; returns when it is durable."""
        await self._stream.append({**self._said(kind, options), "keys": list(keys), **more})

    async def beat(self, options: Options, *, taken: Sequence[str], alone: Sequence[str], paused: str | None) -> None:
        """Write down that a worker is there, with all that it has in hand."""
        await self.write("beat", options, keys=taken, alone=list(alone))
        about = {"host": socket.gethostname(), "pid": os.getpid(), "version": options.version, "paused": paused}
        await self._alive.append({**self._said("beat", options), **about, "in_hand": len(taken) + len(alone)})

    async def sign_off(self, options: Options) -> None:
        """Write down that a worker has left."""
        await self._alive.append(self._said("bye", options))

    async def workers(self, *, clear_at: datetime | None) -> Mapping[str, Worker]:
        """What every worker has said, by owner, as far back as it matters.

        At `clear_at` nothing waited that comes again: who has not seen that yet reads all that is kept.
        """
        since = None if clear_at is None else clear_at - _REACH
        found: dict[str, Worker] = {}
        for record in await self._stream.read(since=since):
            owner = record["owner"]
            found.setdefault(owner, Worker(owner)).hear(record)
        return found

    async def present(self) -> Sequence[Present]:
        """The workers that have been heard of lately, and have not left."""
        now = self._link.clock.now()
        found: dict[str, Present] = {}
        for record in await self._alive.read(since=now - HEARD_OF):
            owner = record["owner"]
            found.pop(owner, None)
            if record["kind"] == "beat":
                about = (record["host"], record["pid"], record["version"], from_micros(record["at"]), record["paused"])
                found[owner] = Present(Alive(owner, *about), record["process"], record["in_hand"])
        return [worker for worker in found.values() if now - worker.alive.seen_at <= HEARD_OF]

    def _said(self, kind: str, options: Options) -> Record:
        at = to_micros(self._link.clock.now())
        return {"kind": kind, "owner": options.owner, "process": identity(), "at": at}
