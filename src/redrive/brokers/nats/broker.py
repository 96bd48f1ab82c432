"""The NATS broker: one server, or one cluster."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from redrive.brokers.nats import alive, doctor
from redrive.brokers.nats.address import Address
from redrive.brokers.nats.book import Write
from redrive.brokers.nats.dead_letters import NatsDeadLetters
from redrive.brokers.nats.depth import depth_of, depth_of_nobody
from redrive.brokers.nats.heading import message_of
from redrive.brokers.nats.intake import nak
from redrive.brokers.nats.names import BUCKET_STREAM, PRIVATE, check_subject
from redrive.brokers.nats.office import Office
from redrive.brokers.nats.publishing import publish
from redrive.brokers.nats.reading import get
from redrive.brokers.nats.returning import send_back
from redrive.brokers.nats.story import State, Story
from redrive.brokers.nats.streams import GROUP, MARK, Stream
from redrive.brokers.nats.subscription import NatsSubscription
from redrive.core.duration import NOW
from redrive.core.message import Message, without_reserved
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

_DIGITS: Final = 18  # of a place in a stream
CAPABILITIES: Final = Capabilities(atomic_give_up=False, thread_heartbeat=False, keeps_acked=True)


class NatsBroker:
    """A `Broker` on NATS JetStream. Nothing is opened until it is used."""

    def __init__(self, url: str, *, name: str = "nats", clock: Clock, sink: EventSink | None = None) -> None:
        self._office = Office.at(Address.of(url), name=name, clock=clock)
        self._sink = sink

    @property
    def name(self) -> str:
        return self._office.name

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def publish(self, queue: str, messages: Sequence[Message], *, delay: timedelta = NOW) -> Sequence[str]:
        check_subject(queue=queue)
        return await publish(self._office, queue, messages, delay=delay) if messages else ()

    async def subscribe(self, queue: str, *, group: str, options: Options) -> Subscription:
        check_subject(queue=queue, group=group)
        if options.dlq.enabled:
            dlq = options.dlq.dlq_of(queue, default=DLQ)
            check_subject(queue=dlq)
            await self._office.streams.check_dlq(dlq, queue=queue)
        joined = await self._office.groups.join(queue, group, lease=options.lease)
        return NatsSubscription(self._office, joined, options=options)

    def dead_letters(self, queue: str, *, place: DeadLetterPlace | None = None) -> NativeDeadLetters:
        check_subject(queue=queue)
        name = (place or DeadLetterPlace()).dlq_of(queue, default=DLQ)
        check_subject(queue=name)
        return NatsDeadLetters(self._office, name=name, queue=queue)

    async def send_back(self, items: Sequence[SendBack]) -> Sequence[str]:
        return await send_back(self._office, items)

    async def original(self, queue: str, message_id: str) -> Message | None:
        """As `Originals` says. A delayed message is not found: where the server put it, only its consumers know."""
        check_subject(queue=queue)
        stream = await self._office.streams.find(queue)
        name, _, place = message_id.rpartition(":")
        if stream is None or name != stream.name or not place.isdecimal() or len(place) > _DIGITS:
            return None
        one = await get(self._office.link, stream, int(place))
        if one is None or one.subject != queue:
            return None
        found = message_of(queue, name=message_id, body=one.body, heading=one.heading, at=one.at)
        return found._replace(headers=without_reserved(found.headers))

    async def queues(self) -> Sequence[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        alone: set[str] = set()
        for stream in await self._office.streams.all():
            if stream.name == BUCKET_STREAM:
                continue
            groups = [one["config"].get("metadata") or {} for one in await self._office.groups.of(stream)]
            found |= {(one[MARK], one[GROUP]) for one in groups if MARK in one and GROUP in one}
            alone |= await self._queues_in(stream)
        known = {queue for queue, _ in found}
        return sorted([*found, *((queue, "") for queue in alone if queue not in known)])

    async def _queues_in(self, stream: Stream) -> set[str]:
        """The queues in a stream: that for which we began it, or its subjects; of a wildcard, those with messages."""
        if stream.ours:
            return {stream.ours}
        found = {one for one in stream.subjects if "*" not in one and ">" not in one}
        if len(found) < len(stream.subjects):
            told = await self._office.link.api(f"STREAM.INFO.{stream.name}", {"subjects_filter": ">"})
            found |= (told["state"].get("subjects") or {}).keys()
        return {one for one in found if not one.startswith((f"{PRIVATE}.", "$"))}

    async def depth(self, queue: str, *, group: str) -> Depth:
        check_subject(queue=queue)
        stream = await self._office.streams.of(queue)
        dead = await self.dead_letters(queue).length()
        if not group:
            return await depth_of_nobody(self._office, stream, queue, dead=dead)
        return await depth_of(self._office, await self._office.groups.find(queue, group), dead=dead)

    async def pause(self, queue: str, *, group: str, why: str | None) -> None:
        await self._office.pauses.set(await self._office.groups.find(queue, group), why)

    async def free(self, queue: str, *, group: str) -> int:
        freed = 0
        for well in (await self._office.groups.find(queue, group)).wells:
            rows = await self._office.book.under(f"story.{well.key}")
            held = [
                (key, row, story) for key, row in rows.items() if (story := Story.load(row.value)).state is State.HELD
            ]
            again = [
                Write(
                    key,
                    replace(story.parked(State.RELEASED), failures=0, crashes=0, first_attempt_at=None).dump(),
                    row.revision,
                )
                for key, row, story in held
            ]
            revisions = await self._office.book.write(again)
            replies = [one[2].reply for one, new in zip(held, revisions, strict=True) if new is not None]
            if replies:
                await self._office.link.say([(reply, nak()) for reply in replies])
            freed += len(replies)
        return freed

    async def alive(self, queue: str, *, group: str) -> Sequence[Alive]:
        found = await self._office.groups.find(queue, group)
        return await alive.heard_of(self._office.book, found, clock=self._office.clock)

    async def diagnose(self) -> Sequence[Finding]:
        return await doctor.examine(self._office)

    async def aclose(self) -> None:
        await self._office.link.aclose()
