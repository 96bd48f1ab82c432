"""The memory broker: plain dicts with the manners of every other broker."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from redrive.brokers.memory.dead_letters import MemoryDeadLetters
from redrive.brokers.memory.group import Group, Place
from redrive.brokers.memory.queues import Queues
from redrive.brokers.memory.subscription import MemorySubscription
from redrive.brokers.names import check_names
from redrive.core.duration import NOW
from redrive.core.message import Message, without_reserved
from redrive.core.place import DLQ, DeadLetterPlace
from redrive.core.ports import (
    Alive,
    Capabilities,
    Clock,
    Depth,
    Finding,
    NativeDeadLetters,
    Options,
    Subscription,
)
from redrive.core.redrive import SendBack

CAPABILITIES: Final = Capabilities(durable=False, many_processes=False, thread_heartbeat=False, rows=True)
HEARD_OF: Final = timedelta(seconds=30)


class MemoryBroker:
    """A `Broker` that lives and dies with this process; the reference for all others.

    Time is the clock's alone: with a manual clock nothing falls due until the clock is moved.
    """

    def __init__(self, *, name: str = "memory", clock: Clock) -> None:
        self._name = name
        self._queues = Queues(clock)

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def publish(self, queue: str, messages: Sequence[Message], *, delay: timedelta = NOW) -> Sequence[str]:
        check_names(queue=queue)
        own = [message._replace(queue=queue, headers=without_reserved(message.headers)) for message in messages]
        entries = [self._queues.new(message, delay=delay) for message in own]
        return [self._queues.put(entry) for entry in entries]

    async def subscribe(self, queue: str, *, group: str, options: Options) -> Subscription:
        check_names(queue=queue, group=group)
        check_names(queue=options.dlq.dlq_of(queue, default=DLQ))
        return MemorySubscription(self._queues, self._queues.open(queue), group=group, options=options)

    def dead_letters(self, queue: str, *, place: DeadLetterPlace | None = None) -> NativeDeadLetters:
        check_names(queue=queue)
        name = (place or DeadLetterPlace()).dlq_of(queue, default=DLQ)
        return MemoryDeadLetters(self._queues, name=name, queue=queue, broker=self._name)

    async def send_back(self, items: Sequence[SendBack]) -> Sequence[str]:
        for item in items:
            check_names(queue=item.queue, group=item.group)
        return [self._queues.send_back(item) for item in items]

    async def queues(self) -> Sequence[tuple[str, str]]:
        return [(queue.name, group) for queue in self._queues for group in queue.groups]

    async def depth(self, queue: str, *, group: str) -> Depth:
        found = self._queues.find(queue).group(group)
        now = self._queues.clock.now()
        found.expire(now)
        ready = [entry for entry in found.at(Place.READY) if entry.due_at <= now]
        waiting = [*ready, *found.at(Place.SUSPECT)]
        in_flight, held = len(found.in_flight), sum(1 for _ in found.at(Place.HELD))
        return Depth(
            waiting=len(waiting),
            in_flight=in_flight,
            scheduled=len(found.entries) - len(waiting) - in_flight - held,
            held=held,
            dead=await self.dead_letters(queue).length(),
            oldest_at=min((at for entry in waiting if (at := entry.message.published_at)), default=None),
            next_due_at=found.next_due_at(now),
            paused=found.paused,
        )

    async def pause(self, queue: str, *, group: str, why: str | None) -> None:
        self._queues.find(queue).group(group).paused = why
        self._queues.ring()

    async def free(self, queue: str, *, group: str) -> int:
        held = list(self._queues.find(queue).group(group).at(Place.HELD))
        for entry in held:
            entry.begin_again(self._queues.clock.now())
        self._queues.ring()
        return len(held)

    async def alive(self, queue: str, *, group: str) -> Sequence[Alive]:
        now = self._queues.clock.now()
        workers = self._queues.find(queue).group(group).workers.values()
        return [worker for worker in workers if now - worker.seen_at <= HEARD_OF]

    async def diagnose(self) -> Sequence[Finding]:
        return [
            Finding(
                check="durability",
                level="warn",
                found="messages are kept in the memory of this process; nothing survives its end",
                prevents="losing every message when the process ends",
                advice="use it for tests; for anything else begin with sqlite:///redrive.db",
            )
        ]

    async def aclose(self) -> None:
        """Nothing to close: what is in memory stays until the object goes."""

    def next_due_at(self) -> datetime | None:
        """When the next message falls due for a group that somebody listens to."""
        now = self._queues.clock.now()
        return min((at for group in self._heard() if (at := group.next_due_at(now))), default=None)

    async def idle(self) -> None:
        """Return when no group that somebody listens to has anything to fetch or in flight.

        What is scheduled, held or paused does not count: it waits for the clock or for a person.
        """
        while any(self._busy(group) for group in self._heard()):
            await self._queues.changed()

    def _heard(self) -> Sequence[Group]:
        return [group for queue in self._queues for group in queue.groups.values() if group.listeners]

    def _busy(self, group: Group) -> bool:
        now = self._queues.clock.now()
        return bool(group.in_flight) or any(True for _ in group.ready(now))
