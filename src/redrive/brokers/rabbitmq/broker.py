"""The RabbitMQ broker: one vhost of one server or cluster."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from pamqp.commands import Basic

from redrive.brokers.rabbitmq import doctor
from redrive.brokers.rabbitmq.address import Address
from redrive.brokers.rabbitmq.dead_letters import RabbitDeadLetters
from redrive.brokers.rabbitmq.depth import depth_of
from redrive.brokers.rabbitmq.entry import Entry, entry_in, new_id, plain_parcel
from redrive.brokers.rabbitmq.grid import GRID, LONGEST, rounded
from redrive.brokers.rabbitmq.link import Posting, tag_of
from redrive.brokers.rabbitmq.names import Place, check
from redrive.brokers.rabbitmq.office import Office
from redrive.brokers.rabbitmq.parcel import Parcel
from redrive.brokers.rabbitmq.returning import send_back
from redrive.brokers.rabbitmq.subscription import RabbitSubscription
from redrive.core.duration import NOW
from redrive.core.errors import QueueNotFound
from redrive.core.message import Message
from redrive.core.place import DLQ, DeadLetterPlace
from redrive.core.ports import (
    Alive,
    Capabilities,
    Clock,
    Depth,
    EventSink,
    Finding,
    NativeDeadLetters,
    Options,
    Subscription,
)
from redrive.core.redrive import SendBack

CAPABILITIES: Final = Capabilities(atomic_give_up=False, thread_heartbeat=False, lists_all=False, delay_grid=GRID)


class RabbitBroker:
    """A `Broker` on RabbitMQ. Nothing is opened until it is used."""

    def __init__(self, url: str, *, name: str = "rabbitmq", clock: Clock, sink: EventSink | None = None) -> None:
        self._office = Office(Address.of(url), name=name, clock=clock, sink=sink)
        self._subscriptions: list[RabbitSubscription] = []

    @property
    def name(self) -> str:
        return self._office.name

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def publish(self, queue: str, messages: Sequence[Message], *, delay: timedelta = NOW) -> Sequence[str]:
        check(queue=queue)
        if not messages:
            return ()
        now, kept = self._office.clock.now(), rounded(delay) if delay > NOW else NOW
        due_at = now + kept if kept else None
        named = [message._replace(id=new_id(), queue=queue) for message in messages]
        parcels = [plain_parcel(message, now=now, due_at=due_at) for message in named]
        await self._office.topology.queue(queue)
        if due_at is None:
            postings = [await self._office.topology.to_queue(queue, parcel) for parcel in parcels]
        else:
            hold = await self._office.topology.hold(Place(queue, ""), min(kept, LONGEST))
            postings = [Posting("", hold, parcel) for parcel in parcels]
        await self._office.link.publish_all(postings)
        return [message.id for message in named]

    async def subscribe(self, queue: str, *, group: str, options: Options) -> Subscription:
        check(queue=queue, group=group)
        dlq = options.dlq.dlq_of(queue, default=DLQ)
        check(queue=dlq)
        place = Place(queue, group)
        facts = await self._office.topology.group(place, moves=options.moves)
        await self._office.notes(place).ensure()
        if options.dlq.enabled and not options.moves:
            await self._office.topology.queue(dlq)  # not with the first letter: a server killed then may forget both
        subscription = RabbitSubscription(
            self._office, place, options=options, incarnation=facts.incarnation, closed=self._left
        )
        self._subscriptions.append(subscription)
        self._office.intakes.append(subscription.intake)
        return subscription

    def dead_letters(self, queue: str, *, place: DeadLetterPlace | None = None) -> NativeDeadLetters:
        check(queue=queue)
        return RabbitDeadLetters(
            self._office, name=(place or DeadLetterPlace()).dlq_of(queue, default=DLQ), queue=queue
        )

    async def send_back(self, items: Sequence[SendBack]) -> Sequence[str]:
        return await send_back(self._office, items)

    async def queues(self) -> Sequence[tuple[str, str]]:
        await self._office.book.open()
        return self._office.book.queues()

    async def depth(self, queue: str, *, group: str) -> Depth:
        dead = await self.dead_letters(queue).length()
        return await depth_of(self._office, Place(queue, group), dead=dead)

    async def pause(self, queue: str, *, group: str, why: str | None) -> None:
        place = await self._known(queue, group)
        if why is None:
            async with self._office.link.for_a_moment() as channel:
                await self._office.link.ask(channel.queue_purge(place.paused))
            return
        await self._office.book.enter_pause(place, why)
        parcel = Parcel(b"", Basic.Properties(delivery_mode=2, message_id=new_id()))
        await self._office.link.publish_all([Posting("", place.paused, parcel)])

    async def free(self, queue: str, *, group: str) -> int:
        place, freed = await self._known(queue, group), 0
        source = self._office.topology.source(place)
        if not await self._office.link.count(place.held):
            return 0
        async with self._office.link.for_a_moment() as channel:
            while (found := await self._office.link.get(channel, place.held)) is not None:
                entry: Entry = entry_in(found, queue=queue, now=self._office.clock.now()).begun_again()
                await self._office.link.publish_all([Posting("", source, entry.parcel())])
                await self._office.link.ack([tag_of(found)])
                freed += 1
        return freed

    async def alive(self, queue: str, *, group: str) -> Sequence[Alive]:
        place = await self._known(queue, group)
        return [worker.alive for worker in await self._office.notes(place).present()]

    async def diagnose(self) -> Sequence[Finding]:
        return await doctor.examine(self._office)

    async def keep_house(self) -> None:
        """What each heartbeat does for the others: leases that have ended become suspects."""
        for subscription in self._subscriptions:
            await subscription.keep_house()

    async def aclose(self) -> None:
        for subscription in self._subscriptions:
            subscription.intake.end()
        await self._office.aclose()

    def _left(self, subscription: RabbitSubscription) -> None:
        """It has signed off; it is kept while something that it handed out is in hand."""
        if subscription.intake in self._office.intakes:
            self._office.intakes.remove(subscription.intake)
        if not any(self._office.hands.of(subscription.place)):
            self._subscriptions.remove(subscription)

    async def _known(self, queue: str, group: str) -> Place:
        await self._office.book.open()
        facts = self._office.book.of(queue)
        if facts is None or group not in facts.groups:
            raise QueueNotFound(f"queue {queue!r} has no group {group!r}")
        return Place(queue, group)
