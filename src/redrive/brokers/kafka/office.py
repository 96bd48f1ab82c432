"""What everything on one cluster shares: clients, the ledger, and one book per group."""

from threading import Lock
from typing import Final

from redrive.brokers.kafka.address import Address
from redrive.brokers.kafka.book import Book
from redrive.brokers.kafka.dlq_topic import DlqTopic
from redrive.brokers.kafka.gone import Looks
from redrive.brokers.kafka.logs import Logs
from redrive.brokers.kafka.names import LEDGER, book_of
from redrive.brokers.kafka.outbox import Outbox
from redrive.brokers.kafka.positions import Positions
from redrive.brokers.kafka.promises import Promises
from redrive.brokers.kafka.topics import Topics
from redrive.brokers.kafka.transactions import Transactions
from redrive.core.ports import Clock, EventSink

_TIMEOUT: Final = 60.0


class Office:
    """Opened at need; one per broker. Safe for many threads."""

    def __init__(
        self, address: Address, *, name: str, clock: Clock, sink: EventSink | None, dlq: DlqTopic | None = None
    ) -> None:
        self.address = address
        self.name = name
        self.clock = clock
        self.sink = sink
        self.topics = Topics(address, dlq=dlq or DlqTopic())
        self.logs = Logs(address)
        self.positions = Positions(address)
        self.promises = Promises(self.positions.ends)
        self.looks = Looks()
        self.outbox = Outbox(address, promises=self.promises)
        self._lock = Lock()
        self._books: dict[str, Book] = {}

    @property
    def ledger(self) -> Book:
        """What was sent back, and which entries have left a DLQ: one for the whole cluster."""
        return self._book(LEDGER)

    def book(self, queue: str, group: str) -> Book:
        """The book of a group."""
        return self._book(book_of(queue, group))

    def transactions(self, identity: str, *, timeout: float = _TIMEOUT) -> Transactions:
        return Transactions(self.address, identity, promises=self.promises, timeout=timeout)

    def close(self) -> None:
        for book in self._books.values():
            book.close()
        self.outbox.close()
        self.logs.close()
        self.positions.close()

    def _book(self, topic: str) -> Book:
        with self._lock:
            if topic not in self._books:
                pen = self.transactions(f"redrive-{topic}")
                self._books[topic] = Book(topic, topics=self.topics, logs=self.logs, promises=self.promises, pen=pen)
            return self._books[topic]
