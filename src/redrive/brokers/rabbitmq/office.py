"""What all parts of one broker share."""

import asyncio
from typing import Protocol

from redrive.brokers.process import identity, is_dead
from redrive.brokers.rabbitmq.address import Address
from redrive.brokers.rabbitmq.book import Book
from redrive.brokers.rabbitmq.hands import Hands
from redrive.brokers.rabbitmq.link import Link
from redrive.brokers.rabbitmq.names import Place
from redrive.brokers.rabbitmq.notes import Notes
from redrive.brokers.rabbitmq.once import Once
from redrive.brokers.rabbitmq.topology import Topology
from redrive.core.ports import Clock, EventSink


class Intake(Protocol):
    """Where messages come to this process."""

    source: str

    async def rest(self) -> None:
        """Have nothing on its way, unless a worker waits for it."""
        ...

    @property
    def waiting(self) -> int:
        """How many have come and are in nobody's hands."""
        ...


class Office:
    """One broker's connection, books and hands. Nothing is opened until it is used."""

    def __init__(self, address: Address, *, name: str, clock: Clock, sink: EventSink | None) -> None:
        self.name = name
        self.clock = clock
        self.link = Link(address, clock=clock, sink=sink)
        self.book = Book(self.link)
        self.topology = Topology(self.link, self.book)
        self.hands = Hands()
        self.intakes: list[Intake] = []
        self._notes: dict[Place, Notes] = {}
        self._once: dict[str, Once] = {}

    def notes(self, place: Place) -> Notes:
        """The notes of a group."""
        return self._notes.setdefault(place, Notes(self.link, place))

    def once(self, queue: str) -> Once:
        """What is done once only, for a queue."""
        return self._once.setdefault(queue, Once(self.link, queue))

    async def rest(self, source: str) -> None:
        """Let everything of a queue be where it can be counted, but for what workers are waiting for."""
        await asyncio.gather(*(intake.rest() for intake in self.intakes if intake.source == source))

    def waiting_here(self, source: str) -> int:
        """How many messages of a queue have come to this process, and are in nobody's hands."""
        return sum(intake.waiting for intake in self.intakes if intake.source == source)

    async def in_hand_elsewhere(self, place: Place) -> int:
        """How many messages of a group other processes had in hand when they were heard of last."""
        here = identity()
        away = [worker for worker in await self.notes(place).present() if worker.process != here]
        return sum(worker.in_hand for worker in away if not is_dead(worker.process))

    async def aclose(self) -> None:
        """Close. Idempotent."""
        await self.link.aclose()
