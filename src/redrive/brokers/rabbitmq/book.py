"""Which queues and groups there are: AMQP cannot list any, so it is written down, once and for ever.

Of two records that contradict each other the first in the stream counts, for everybody.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import uuid4

from redrive.brokers.rabbitmq.grid import milliseconds
from redrive.brokers.rabbitmq.link import Link
from redrive.brokers.rabbitmq.names import BOOK, Place
from redrive.brokers.rabbitmq.stream import Follower, Record, Stream


@dataclass(slots=True)
class Facts:
    """What is written of a queue. `home` is the group that reads the queue itself."""

    incarnation: str
    home: str | None = None
    groups: list[str] = field(default_factory=list)
    movers: set[str] = field(default_factory=set)  # they read the queue itself too: their acks take from it


class Book:
    """The book of a vhost, as read so far: other processes' records come within moments."""

    def __init__(self, link: Link) -> None:
        self._follower = Follower(Stream(link, BOOK), link, self._hear)
        self._queues: dict[str, Facts] = {}
        self._holds: dict[Place, set[int]] = {}
        self._pauses: dict[Place, str] = {}

    async def open(self) -> None:
        """Read what is written."""
        await self._follower.open()

    def queues(self) -> Sequence[tuple[str, str]]:
        """Every queue with each of its groups, or with an empty one."""
        return sorted((queue, group) for queue, facts in self._queues.items() for group in facts.groups or ("",))

    def of(self, queue: str) -> Facts | None:
        """What is written of a queue, if anything is."""
        return self._queues.get(queue)

    def holds(self, place: Place) -> Sequence[int]:
        """The hold queues that were begun, by their milliseconds."""
        return sorted(self._holds.get(place, ()))

    async def enter_queue(self, queue: str) -> Facts:
        """Write down that there is a queue."""
        await self.open()
        if queue not in self._queues:
            await self._follower.tell({"queue": queue, "incarnation": uuid4().hex})
        return self._queues[queue]

    async def enter_group(self, place: Place, *, moves: bool = False) -> Facts:
        """Write down that there is a group. The first one reads the queue itself, and whoever `moves`."""
        facts = await self.enter_queue(place.queue)
        if place.group not in facts.groups:
            await self._follower.tell({"queue": place.queue, "group": place.group, "moves": moves})
        return facts

    async def enter_hold(self, place: Place, step: timedelta) -> None:
        """Write down that messages may wait there for so long."""
        await self.open()
        number = milliseconds(step)
        if number not in self._holds.get(place, ()):
            await self._follower.tell({"queue": place.queue, "group": place.group, "hold": number})

    async def enter_pause(self, place: Place, why: str) -> None:
        """Write down why a group is paused. Whether it is says its queue, which nobody may take from to read it."""
        await self.open()
        await self._follower.tell({"queue": place.queue, "group": place.group, "paused": why})

    def why_paused(self, place: Place) -> str:
        """Why a group was paused last."""
        return self._pauses.get(place, "")

    async def aclose(self) -> None:
        await self._follower.aclose()

    def _hear(self, record: Record) -> None:
        queue = record["queue"]
        if "hold" in record:
            self._holds.setdefault(Place(queue, record["group"]), set()).add(record["hold"])
        elif "paused" in record:
            self._pauses[Place(queue, record["group"])] = record["paused"]
        elif "incarnation" in record:
            self._queues.setdefault(queue, Facts(record["incarnation"]))
        else:
            facts = self._queues[queue]
            if record["group"] not in facts.groups:
                facts.groups.append(record["group"])
                facts.home = facts.home or record["group"]
                if record["moves"]:
                    facts.movers.add(record["group"])
