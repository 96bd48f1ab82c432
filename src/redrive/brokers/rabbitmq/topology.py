"""What is begun on the server: queues, the exchange that gives each group its copy, and the hold queues."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from redrive.brokers.rabbitmq.book import Book, Facts
from redrive.brokers.rabbitmq.grid import milliseconds, step_of
from redrive.brokers.rabbitmq.link import Link, Posting
from redrive.brokers.rabbitmq.names import Place, fan_of
from redrive.brokers.rabbitmq.parcel import Parcel

QUORUM: Final[Mapping[str, Any]] = {"x-queue-type": "quorum"}
LAST_WORD: Final[Mapping[str, Any]] = {**QUORUM, "x-max-length": 1}


class Topology:
    """Begins what is not there yet. Every call is idempotent, and costs nothing the second time."""

    def __init__(self, link: Link, book: Book) -> None:
        self._link = link
        self._book = book
        self._begun: set[str | Place | tuple[Place, timedelta]] = set()
        link.missing = self._begun.clear

    async def queue(self, queue: str) -> Facts:
        """A queue, and the exchange in front of it."""
        if queue not in self._begun:
            await self._link.declare(queue, arguments=QUORUM)
            async with self._link.for_a_moment() as channel:
                await self._link.ask(channel.exchange_declare(fan_of(queue), exchange_type="fanout", durable=True))
                await self._link.ask(channel.queue_bind(queue, fan_of(queue), routing_key=queue))
            await self._book.enter_queue(queue)
            self._begun.add(queue)
        return await self._book.enter_queue(queue)

    async def group(self, place: Place, *, moves: bool = False) -> Facts:
        """A group with everything that belongs to it."""
        facts = await self.queue(place.queue)
        if place not in self._begun:
            facts = await self._book.enter_group(place, moves=moves)
            if self.source(place) == place.beside:
                await self._link.declare(place.beside, arguments=QUORUM)
                async with self._link.for_a_moment() as channel:
                    await self._link.ask(channel.queue_bind(place.beside, fan_of(place.queue), routing_key=place.group))
            await self._link.declare(place.suspects, arguments=QUORUM)
            await self._link.declare(place.held, arguments=QUORUM)
            await self._link.declare(place.paused, arguments=LAST_WORD)
            self._begun.add(place)
        return facts

    def source(self, place: Place) -> str:
        """The queue that a group reads."""
        facts = self._book.of(place.queue)
        reads_itself = facts is None or not place.group or place.group in (facts.home, *facts.movers)
        return place.queue if reads_itself else place.beside

    async def hold(self, place: Place, step: timedelta) -> str:
        """The queue in which messages of a group wait for so long; without a group, those for every group."""
        name = place.hold(milliseconds(step))
        if (place, step) not in self._begun:
            exchange, routing_key = ("", self.source(place)) if place.group else (fan_of(place.queue), place.queue)
            arguments = {
                **QUORUM,
                "x-message-ttl": milliseconds(step),
                "x-dead-letter-exchange": exchange,
                "x-dead-letter-routing-key": routing_key,
                "x-dead-letter-strategy": "at-least-once",
                "x-overflow": "reject-publish",
            }
            await self._link.declare(name, arguments=arguments, needed=True)
            await self._book.enter_hold(place, step)
            self._begun.add((place, step))
        return name

    async def posting(self, place: Place, parcel: Parcel, *, due_at: datetime | None, now: datetime) -> Posting:
        """Where a message of a group goes: into its queue, or into the hold queue for the time that it has left."""
        if due_at is None or due_at <= now:
            return Posting("", self.source(place), parcel)
        return Posting("", await self.hold(place, step_of(due_at - now)), parcel)

    async def to_queue(self, queue: str, parcel: Parcel) -> Posting:
        """Where a message for every group of a queue goes."""
        if queue not in self._begun:
            await self.queue(queue)
        return Posting(fan_of(queue), queue, parcel)
