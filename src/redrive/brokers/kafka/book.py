"""A book: a compacted topic read into a dict, and changed by one writer at a time.

Whoever writes takes the book's identity, and so fences whoever had it before. A transaction that is committed was
therefore decided on the latest state of the book: nobody can have written in between.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from typing import Final, NamedTuple

from redrive.brokers.kafka.logs import Logs
from redrive.brokers.kafka.promises import Promises
from redrive.brokers.kafka.record import Place, Record
from redrive.brokers.kafka.topics import Topics
from redrive.brokers.kafka.transactions import Offsets, Placed, Transactions
from redrive.core.errors import BrokerUnavailable
from redrive.core.message import Headers

_ROUNDS: Final = 20


class Row(NamedTuple):
    """What stands under a key."""

    value: bytes
    headers: Headers = ()


class Change(NamedTuple):
    """What is to be done in one step: rows written (None: struck out), records into other topics, offsets committed.

    `then` gives more rows, once it is known where the records are.
    """

    rows: Mapping[str, Row | None] = {}
    records: Sequence[Record] = ()
    offsets: Sequence[Offsets] = ()
    then: Callable[[Sequence[Placed]], Mapping[str, Row | None]] | None = None


Rows = Mapping[str, Row]


class Book:
    """One book. Safe for many threads; every call blocks."""

    def __init__(self, topic: str, *, topics: Topics, logs: Logs, promises: Promises, pen: Transactions) -> None:
        self.topic = topic
        self._topics = topics
        self._logs = logs
        self._promises = promises
        self._pen = pen
        self._lock = RLock()
        self._rows: dict[str, Row] = {}
        self._next = 0
        self.changed: Callable[[], None] = lambda: None

    @property
    def rows(self) -> Rows:
        """As it was at the last look."""
        return self._rows

    def refresh(self) -> Rows:
        """As it is now."""
        with self._lock:
            if not self._topics.exists(self.topic):
                return self._rows
            place: Place = (self.topic, 0)
            end = self._promises.ends([place])[place]
            if end > self._next:
                for read in self._logs.read({place: (self._next, end)}):
                    key = (read.key or b"").decode("utf-8", "surrogateescape")
                    if read.value:
                        self._rows[key] = Row(read.value[1:], read.headers)
                    else:
                        self._rows.pop(key, None)
                self._next = end
                self.changed()
            return self._rows

    def change(self, decide: Callable[[Rows], Change | None]) -> Sequence[Placed]:
        """Do what `decide` makes of the latest state; it is asked again if somebody else was quicker.

        It must know its own work again: after a commit without an answer it is shown what became of it.
        """
        with self._lock:
            self._topics.ensure(self.topic)
            for _ in range(_ROUNDS):
                self._pen.open()
                change = decide(self.refresh())
                if change is None:
                    return ()
                try:
                    return self._write(change)
                except BrokerUnavailable:
                    self._pen.drop()
            raise BrokerUnavailable(f"kafka: others write into {self.topic!r} all the time")

    def take_over(self) -> None:
        """End what anybody has under way here, one way or the other: who lives tries again."""
        with self._lock:
            self._pen.drop()
            self._pen.open()

    def record(self, key: str, row: Row | None) -> Record:
        """A row as it is written. New ones may be written by anybody, in a transaction of their own."""
        value = None if row is None else b"+" + row.value
        return Record(self.topic, value, () if row is None else row.headers, key.encode("utf-8", "surrogateescape"), 0)

    def close(self) -> None:
        with contextlib.suppress(BrokerUnavailable):
            self._pen.drop()

    def _write(self, change: Change) -> Sequence[Placed]:
        def then(placed: Sequence[Placed]) -> Sequence[Record]:
            more = {} if change.then is None else change.then(placed)
            return [self.record(key, row) for key, row in {**change.rows, **more}.items()]

        placed = self._pen.carry_out(change.records, offsets=change.offsets, then=then)
        self.refresh()
        return placed[: len(change.records)]
