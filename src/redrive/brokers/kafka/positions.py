"""Where partitions begin and end, and how far groups have come.

Asked by consumers: the client's administrator answers the same questions, and brings the process down if the cluster
does not answer it in time (librdkafka 2.16: an assertion, or memory that is freed twice).
"""

from collections.abc import Iterable, Mapping
from threading import RLock
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from redrive.brokers.kafka.address import Address
from redrive.brokers.kafka.errors import GONE, PASSING
from redrive.brokers.kafka.insisting import IN_ALL, ask, insist
from redrive.brokers.kafka.record import Place

_PATIENCE: Final = 5.0  # seconds for one answer; a leader that is gone is waited for so long
_IN_PLACE: Final = 10.0  # seconds for the cluster to say who leads now
_LATEST: Final = -1
_EARLIEST: Final = -2
_KEPT: Final = 8  # consumers, one for each group that was asked about lately


class Positions:
    """Offsets of partitions and of groups. Safe for many threads; every call blocks."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._lock = RLock()
        self._consumers: dict[tuple[str, bool], Consumer] = {}

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Up to where a reader of committed messages can read now."""
        return self.since(dict.fromkeys(places, _LATEST))

    def starts(self, places: Iterable[Place]) -> dict[Place, int]:
        """Where partitions begin."""
        return self.since(dict.fromkeys(places, _EARLIEST))

    def since(self, times: Mapping[Place, int]) -> dict[Place, int]:
        """The first offset written at these times, in milliseconds, or later; -1 if there is none."""
        asked = [TopicPartition(*place, at) for place, at in times.items()]
        return {place: offset for place, (offset, _) in self._ask("redrive..looks", asked).items()} if asked else {}

    def committed(
        self, group: str, places: Iterable[Place], *, stable: bool = True, patience: float = IN_ALL
    ) -> dict[Place, tuple[int, str]]:
        """Offsets and metadata that a group has committed; what has none is left out.

        With `stable`, transactions that are under way are waited for, so many seconds.
        """
        asked = [TopicPartition(*place) for place in places]
        if not asked:
            return {}
        with self._lock:
            consumer = self._consumer(group, stable=stable)
        answer = insist(lambda: _told(consumer.committed(asked, timeout=patience)), patience=patience)
        return {place: commit for place, commit in answer.items() if commit[0] >= 0}

    def commit(self, group: str, offsets: Mapping[Place, int]) -> None:
        """Set where a group that has no member begins to read."""
        wanted = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        with self._lock:
            consumer = self._consumer(group, stable=True)
        insist(lambda: _told(consumer.commit(offsets=wanted, asynchronous=False) or []))

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            for consumer in self._consumers.values():
                consumer.close()
            self._consumers.clear()

    def _ask(self, group: str, asked: list[TopicPartition]) -> dict[Place, tuple[int, str]]:
        with self._lock:
            consumer = self._consumer(group, stable=True)

        def look() -> dict[Place, tuple[int, str]]:
            try:
                return _told(consumer.offsets_for_times(asked, timeout=_PATIENCE))
            except KafkaException:
                # A leader may have changed, or be gone: it does not ask by itself.
                topics = {each.topic for each in asked}
                ask(lambda: [consumer.list_topics(topic, timeout=_IN_PLACE) for topic in topics])
                raise

        return insist(look, passing=PASSING | GONE)

    def _consumer(self, group: str, *, stable: bool) -> Consumer:
        key = (group, stable)
        if key not in self._consumers:
            if len(self._consumers) >= _KEPT:
                self._consumers.pop(next(iter(self._consumers)))  # closed when nobody asks it any more
            isolation = "read_committed" if stable else "read_uncommitted"
            settings = {**self._address.of_consumer(), "group.id": group, "isolation.level": isolation}
            self._consumers[key] = insist(lambda: Consumer(settings))
        return self._consumers[key]


def _told(partitions: Iterable[TopicPartition]) -> dict[Place, tuple[int, str]]:
    found = {}
    for each in partitions:
        if each.error is not None:
            raise KafkaException(each.error)
        found[each.topic, each.partition] = (each.offset, each.metadata or "")
    return found
