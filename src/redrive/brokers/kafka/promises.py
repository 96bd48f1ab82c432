"""What this process has written and committed, and every later look of its own must see.

A commit is answered when it is decided; readers see it a moment later, when the marks are in the partitions. Whoever
looks right after has to wait for them.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Final

from redrive.brokers.kafka.record import Place
from redrive.core.errors import BrokerUnavailable

_PATIENCE: Final = 30.0


class Promises:
    """The offsets up to which partitions must be readable. Safe for many threads."""

    def __init__(self, ends: Callable[[Iterable[Place]], Mapping[Place, int]]) -> None:
        self._ends = ends
        self._lock = Lock()
        self._offsets: dict[Place, int] = {}

    def made(self, placed: Iterable[tuple[str, int, int]]) -> None:
        """These were written, and committed: topics, partitions and offsets."""
        with self._lock:
            offsets = self._offsets
            for topic, partition, offset in placed:
                place = (topic, partition)
                if offset >= offsets.get(place, 0):
                    offsets[place] = offset + 1

    def forget(self, places: Iterable[Place]) -> None:
        """What was written there is gone, with its topic."""
        with self._lock:
            for place in places:
                self._offsets.pop(place, None)

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Up to where these can be read, when everything promised can be."""
        wanted = list(places)
        until = time.monotonic() + _PATIENCE
        while True:
            found = dict(self._ends(wanted))
            late = {place for place in wanted if found.get(place, 0) < self._offsets.get(place, 0)}
            if not late:
                with self._lock:
                    for place in wanted:
                        if self._offsets.get(place, 0) <= found.get(place, 0):
                            self._offsets.pop(place, None)
                return found
            if time.monotonic() > until:
                raise BrokerUnavailable(f"kafka: a transaction that was committed does not appear in {sorted(late)}")
            time.sleep(0.005)
