"""The Kafka broker: one cluster."""

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Final, TypeVar
from uuid import uuid4

from redrive.brokers.kafka import alive, doctor
from redrive.brokers.kafka.address import Address
from redrive.brokers.kafka.book import Book, Change, Row, Rows
from redrive.brokers.kafka.clerk import Clerk
from redrive.brokers.kafka.dead_letters import KafkaDeadLetters
from redrive.brokers.kafka.depth import depth_of
from redrive.brokers.kafka.dlq_topic import DlqTopic
from redrive.brokers.kafka.finding import find
from redrive.brokers.kafka.gone import begin_life
from redrive.brokers.kafka.joining import begin
from redrive.brokers.kafka.membership import Membership
from redrive.brokers.kafka.names import check_topic, group_of, is_private, lane_of
from redrive.brokers.kafka.office import Office
from redrive.brokers.kafka.record import plain_message, plain_record
from redrive.brokers.kafka.returning import send_back
from redrive.brokers.kafka.subscription import KafkaSubscription
from redrive.brokers.kafka.suspects import PAUSED, held_in, paused_in
from redrive.core.duration import NOW
from redrive.core.errors import BrokerUnavailable, QueueNotFound
from redrive.core.message import Message
from redrive.core.place import DeadLetterPlace
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

T = TypeVar("T")

_PREFETCH: Final = 2000
"""A commit costs the same however many messages it is for, and new ones are handed out by the stretch."""
_PUBLISH_TIMEOUT: Final = 10.0
"""Seconds after which a publisher that died in a transaction no longer holds up those who read."""


class KafkaBroker:
    """A `Broker` on a Kafka cluster. Nothing is opened until it is used."""

    def __init__(
        self,
        url: str,
        *,
        name: str = "kafka",
        clock: Clock,
        sink: EventSink | None = None,
        dlq: DlqTopic | None = None,
    ) -> None:
        self._dlq = dlq or DlqTopic()
        self._capabilities = Capabilities(rows=True, keeps_acked=True, dlq=self._dlq.name, prefetch=_PREFETCH)
        self._office = Office(Address.of(url), name=name, clock=clock, sink=sink, dlq=self._dlq)
        self._calls = ThreadPoolExecutor(4, thread_name_prefix="redrive-kafka")
        self._publisher = self._office.transactions(f"redrive-publish-{uuid4().hex}", timeout=_PUBLISH_TIMEOUT)
        self._members: dict[tuple[str, str], Membership] = {}
        self._closed = False

    @property
    def name(self) -> str:
        return self._office.name

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def publish(self, queue: str, messages: Sequence[Message], *, delay: timedelta = NOW) -> Sequence[str]:
        check_topic(queue=queue)
        if not messages:
            return ()
        now = self._office.clock.now()
        due_at = now + delay if delay > NOW else None
        records = [plain_record(message._replace(queue=queue), now=now, due_at=due_at) for message in messages]
        alone = len(records) == 1

        def prepare() -> None:
            self._office.topics.ensure(queue)
            if alone:
                self._office.outbox.open()

        await self._call(prepare)
        if alone:
            return [(await self._office.outbox.send(records[0])).id]
        placed = await self._call(lambda: self._publisher.carry_out(records))
        return [each.id for each in placed]

    async def subscribe(self, queue: str, *, group: str, options: Options) -> Subscription:
        check_topic(queue=queue, group=group)
        check_topic(queue=options.dlq.dlq_of(queue, default=self._dlq.name))

        def join() -> str:
            begin(self._office, queue, group)
            self._office.book(queue, group).refresh()
            life = self._office.topics.identity(queue)
            if options.moves:
                begin_life(self._office.ledger, queue, life)
            return life

        incarnation = await self._call(join)
        membership = self._members.get((queue, group))
        if membership is None:
            membership = Membership(self._office, queue=queue, group=group, life=incarnation, lease=options.lease)
            self._members[queue, group] = membership
        return KafkaSubscription(self._office, membership, options=options, incarnation=incarnation, closed=self._left)

    def dead_letters(self, queue: str, *, place: DeadLetterPlace | None = None) -> NativeDeadLetters:
        check_topic(queue=queue)
        name = (place or DeadLetterPlace()).dlq_of(queue, default=self._dlq.name)
        return KafkaDeadLetters(self._office, self._calls, name=name, queue=queue)

    async def send_back(self, items: Sequence[SendBack]) -> Sequence[str]:
        return await self._call(lambda: send_back(self._office, items))

    async def original(self, queue: str, message_id: str) -> Message | None:
        """As `Originals` says: found for as long as its topic keeps it, whoever has read it."""
        check_topic(queue=queue)
        where = message_id.removeprefix(f"{queue}-")
        found = await self._call(lambda: find(self._office, queue, where)) if where != message_id else None
        return None if found is None else plain_message(found)

    async def queues(self) -> Sequence[tuple[str, str]]:
        topics = await self._call(self._office.topics.all)
        groups = [found for name in topics if (found := group_of(name)) is not None]
        alone = [(name, "") for name in topics if not is_private(name) and name not in {queue for queue, _ in groups}]
        return sorted([*groups, *alone])

    async def depth(self, queue: str, *, group: str) -> Depth:
        dead = await self.dead_letters(queue).length()
        return await self._call(lambda: depth_of(self._office, queue, group=group, dead=dead))

    async def pause(self, queue: str, *, group: str, why: str | None) -> None:
        def decide(rows: Rows) -> Change | None:
            if paused_in(rows) == why:
                return None
            return Change({PAUSED: None if why is None else Row(json.dumps(why).encode())})

        await self._call(lambda: self._book_of(queue, group).change(decide))

    async def free(self, queue: str, *, group: str) -> int:
        def free() -> int:
            book = self._book_of(queue, group)
            clerk = Clerk(self._office.topics, book, queue=queue, group=group, clock=self._office.clock)
            freed = 0

            def decide(rows: Rows) -> Change | None:
                nonlocal freed
                now = self._office.clock.now()
                held = list(held_in(rows, queue=queue, now=now))
                freed = max(freed, len(held))
                records = [clerk.for_lane(entry.begun_again(), now=now) for _, entry in held]
                return Change({key: None for key, _ in held}, records) if held else None

            book.change(decide)
            return freed

        return await self._call(free)

    async def alive(self, queue: str, *, group: str) -> Sequence[Alive]:
        return await self._call(lambda: alive.heard_of(self._office, queue, group=group))

    async def diagnose(self) -> Sequence[Finding]:
        return await self._call(lambda: doctor.examine(self._office))

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        members = list(self._members.values())
        for membership in members:
            self._left(membership)

        def close() -> None:
            for membership in members:
                membership.close()
            self._publisher.drop()
            self._office.close()

        await asyncio.get_running_loop().run_in_executor(None, close)
        self._calls.shutdown(wait=False)

    def _left(self, membership: Membership) -> None:
        """Nobody may find it any more: it is about to be closed."""
        membership.is_closed = True
        if self._members.get((membership.queue, membership.group)) is membership:
            del self._members[membership.queue, membership.group]

    def _book_of(self, queue: str, group: str) -> Book:
        if not self._office.topics.exists(lane_of(queue, group)):
            raise QueueNotFound(f"queue {queue!r} has no group {group!r}")
        return self._office.book(queue, group)

    async def _call(self, call: Callable[[], T]) -> T:
        """Have something done by a thread; once begun, it is not left undone."""
        if self._closed:
            raise BrokerUnavailable("kafka: this broker has been closed")
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._calls, call))
