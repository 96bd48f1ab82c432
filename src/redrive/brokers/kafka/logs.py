"""Reading partitions from here to there, without any group: for looks, counts and the book."""

import time
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from redrive.brokers.kafka import codes
from redrive.brokers.kafka.address import Address
from redrive.brokers.kafka.errors import translate
from redrive.brokers.kafka.record import Place, Read, read_of
from redrive.core.errors import BrokerUnavailable

_PATIENCE: Final = 30.0
_AT_ONCE: Final = 1000


class Logs:
    """One reader for all; safe for many threads, one look at a time. Every call blocks."""

    def __init__(self, address: Address) -> None:
        self._settings = {
            "fetch.wait.max.ms": 20,
            **address.of_consumer(),
            "group.id": "redrive..looks",
            "fetch.error.backoff.ms": 20,
        }
        self._lock = Lock()
        self._consumer: Consumer | None = None
        self._known: set[str] = set()

    def read(self, spans: Mapping[Place, tuple[int, int]], *, most: int | None = None) -> Sequence[Read]:
        """Every committed record from the first offset of a span up to, not with, the second.

        With `most`, no more than about so many of each partition.
        """
        wanted = {place: span for place, span in spans.items() if span[0] < span[1]}
        if not wanted:
            return ()
        with self._lock:
            try:
                return self._read(wanted, most)
            except KafkaException as error:
                raise translate(error) from error
            finally:
                if self._consumer is not None:
                    self._consumer.unassign()

    def close(self) -> None:
        with self._lock:
            if self._consumer is not None:
                self._consumer.close()
                self._consumer = None

    def _read(self, wanted: Mapping[Place, tuple[int, int]], most: int | None) -> list[Read]:
        if self._consumer is None:
            self._consumer = Consumer(self._settings)
        consumer = self._consumer
        for topic in {topic for topic, _ in wanted} - self._known:  # or it would ask for its leaders only in a while
            consumer.list_topics(topic, timeout=_PATIENCE)
            self._known.add(topic)
        consumer.assign([TopicPartition(topic, number, start) for (topic, number), (start, _) in wanted.items()])
        found: list[Read] = []
        left = Left(wanted, most)
        ends = time.monotonic() + _PATIENCE
        while left.places:
            messages = consumer.consume(1, 1.0) + consumer.consume(_AT_ONCE, 0)
            if messages:
                ends = time.monotonic() + _PATIENCE
            for message in messages:
                found += left.take(message)
            if time.monotonic() > ends:
                raise BrokerUnavailable(f"kafka: nothing comes from {sorted(left.places)}")
        return found


class Left:
    """What is still to be read."""

    def __init__(self, wanted: Mapping[Place, tuple[int, int]], most: int | None) -> None:
        self.places = set(wanted)
        self._wanted = wanted
        self._most = most
        self._counts = dict.fromkeys(wanted, 0)

    def take(self, message: Any) -> Sequence[Read]:
        """The record in what came from the client, if it is one that is wanted. Raises `KafkaException`."""
        place: Place = (message.topic(), message.partition())
        error = message.error()
        if error is not None and error.code() != codes.PARTITION_EOF:
            if not error.retriable():
                raise KafkaException(error)
            return ()
        if place not in self.places:
            return ()
        offset, end = message.offset(), self._wanted[place][1]
        wanted = error is None and offset < end
        self._counts[place] += wanted
        if offset + (error is None) >= end or self._counts[place] == self._most:
            self.places.discard(place)
        return (read_of(message),) if wanted else ()
