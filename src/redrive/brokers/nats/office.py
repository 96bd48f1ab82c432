"""What everything in this adapter works with."""

from dataclasses import dataclass

from redrive.brokers.nats.address import Address
from redrive.brokers.nats.book import Book
from redrive.brokers.nats.groups import Groups
from redrive.brokers.nats.link import Link
from redrive.brokers.nats.pauses import Pauses
from redrive.brokers.nats.streams import Streams
from redrive.core.ports import Clock


@dataclass(frozen=True, slots=True)
class Office:
    """One server, and those who know their way about it."""

    name: str
    address: Address
    clock: Clock
    link: Link
    streams: Streams
    groups: Groups
    book: Book
    pauses: Pauses

    @classmethod
    def at(cls, address: Address, *, name: str, clock: Clock) -> "Office":
        """An office; nothing is opened yet."""
        link = Link(address)
        streams = Streams(link, address.terms)
        book = Book(link, streams)
        return cls(name, address, clock, link, streams, Groups(link, streams), book, Pauses(book, clock))
