"""Groups: a durable consumer for each, on the queue's stream, and on that of its lane if that is another."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from redrive.brokers.nats.errors import Refused
from redrive.brokers.nats.link import Link
from redrive.brokers.nats.names import consumer_name, lane_of
from redrive.brokers.nats.streams import GROUP, MARK, Stream, Streams
from redrive.core.errors import ConfigError, QueueNotFound
from redrive.core.ports import LEASE

_SECOND: Final = 1_000_000_000
_WAITING: Final = 2048
_WORK_QUEUE: Final = "workqueue"


@dataclass(frozen=True, slots=True)
class Well:
    """A consumer from which a group's messages are pulled."""

    stream: Stream
    consumer: str

    @property
    def key(self) -> str:
        """What its keys in the bucket have in common."""
        return f"{self.stream.name}.{self.consumer}"


@dataclass(frozen=True, slots=True)
class Group:
    """A group of a queue, and where its messages come from: the queue first."""

    queue: str
    name: str
    wells: tuple[Well, ...]

    @property
    def lane(self) -> str:
        """The subject of what is sent back to this group."""
        return lane_of(self.queue, self.name)

    @property
    def incarnation(self) -> str:
        """The name of this life of the queue."""
        return self.wells[0].stream.created


class Groups:
    """Joins groups, and finds them."""

    def __init__(self, link: Link, streams: Streams) -> None:
        self._link = link
        self._streams = streams

    async def join(self, queue: str, group: str, *, lease: timedelta | None = None) -> Group:
        """A group, begun if need be; the first of a queue gets what was waiting. A lease that is given is its lease."""
        stream, lanes = await self._streams.ensure(queue), await self._streams.lanes(queue)
        name = consumer_name(queue, group)
        filters = [queue, f"{queue}.*.*"] if stream.is_dlq else [queue]
        lane = lane_of(queue, group)
        if lanes.name == stream.name:
            await self._begin(stream, name, [*filters, lane], queue=queue, group=group, lease=lease)
            return Group(queue, group, (Well(stream, name),))
        await self._begin(stream, name, filters, queue=queue, group=group, lease=lease)
        await self._begin(lanes, name, [lane], queue=queue, group=group, lease=lease)
        return Group(queue, group, (Well(stream, name), Well(lanes, name)))

    async def find(self, queue: str, group: str) -> Group:
        """A group that is there. Raises `QueueNotFound`."""
        stream = await self._streams.of(queue)
        if await self.info(stream, consumer_name(queue, group)) is None:
            raise QueueNotFound(f"queue {queue!r} has no group {group!r}")
        return await self.join(queue, group)

    async def info(self, stream: Stream, consumer: str) -> dict[str, Any] | None:
        """What the server knows of a consumer; None if there is none."""
        try:
            return await self._link.api(f"CONSUMER.INFO.{stream.name}.{consumer}")
        except QueueNotFound:
            return None

    async def of(self, stream: Stream) -> list[dict[str, Any]]:
        """Every consumer of a stream."""
        found: list[dict[str, Any]] = []
        while True:
            told = await self._link.api(f"CONSUMER.LIST.{stream.name}", {"offset": len(found)})
            found += told["consumers"] or ()
            if not told["consumers"] or len(found) >= told["total"]:
                return found

    async def _begin(
        self, stream: Stream, name: str, filters: list[str], *, queue: str, group: str, lease: timedelta | None
    ) -> None:
        known = await self.info(stream, name)
        if known is None:
            config = {
                "name": name,
                "durable_name": name,
                "deliver_policy": await self._start(stream, queue),
                "ack_policy": "explicit",
                "ack_wait": nanos(lease or LEASE),
                "max_deliver": -1,
                "max_ack_pending": -1,
                "max_waiting": _WAITING,
                "filter_subjects": filters,
                "metadata": {MARK: queue, GROUP: group},
            }
            await self._create(stream, config, action="create")
        elif lease is not None and known["config"].get("ack_wait") != nanos(lease):
            await self._create(stream, {**known["config"], "ack_wait": nanos(lease)}, action="update")

    async def _create(self, stream: Stream, config: dict[str, Any], *, action: str) -> None:
        name = config["name"]
        asked = {"stream_name": stream.name, "config": config, "action": action}
        try:
            await self._link.api(f"CONSUMER.CREATE.{stream.name}.{name}", asked)
        except (Refused, ConfigError):
            if await self.info(stream, name) is None:  # else another process was quicker
                raise

    async def _start(self, stream: Stream, queue: str) -> str:
        if stream.config.get("retention") == _WORK_QUEUE:
            return "all"
        others = (one["config"].get("metadata") or {} for one in await self.of(stream))
        return "new" if any(one.get(MARK) == queue for one in others) else "all"


def nanos(delta: timedelta) -> int:
    """A duration as the server counts."""
    return int(delta / timedelta(microseconds=1)) * 1000
