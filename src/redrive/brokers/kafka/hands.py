"""What this process has of a group's work: read and waiting for a lane, waiting for its time, or in hand."""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Final

from redrive.brokers.kafka.entry import Entry, Lease
from redrive.brokers.kafka.record import Place
from redrive.brokers.kafka.window import Window
from redrive.core.outcome import Settled

_REMEMBERED: Final = 10_000  # answers kept for settlements that are sent twice
_tokens = count(1)


class Hands:
    """Entries of the partitions that are ours now, and a window for each of those. Not safe for threads."""

    def __init__(self) -> None:
        self.windows: dict[Place, Window] = {}
        self._terms: dict[Place, int] = {}
        self.in_hand: dict[int | str, Entry] = {}
        self.answers: dict[int | str, Settled] = {}
        self.suspects: list[Entry] = []  # to be moved into the book
        self.delayed: list[Entry] = []  # to be moved into the lane
        self._ready: deque[Entry] = deque()
        self._later: list[tuple[datetime, int, Entry]] = []
        self._turns = count()
        self._busy: set[bytes] = set()
        self._behind: dict[bytes, deque[Entry]] = {}

    @property
    def ready(self) -> int:
        """How many wait for nothing but a lane."""
        return len(self._ready)

    @property
    def next_due_at(self) -> datetime | None:
        return self._later[0][0] if self._later else None

    def come(self, windows: Mapping[Place, Window]) -> None:
        """These partitions are ours from now on."""
        self.windows |= windows
        self._terms |= {place: next(self._turns) for place in windows}

    def term(self, place: Place) -> int:
        """A number for the time for which a partition is ours."""
        return self._terms[place]

    def has(self, entry: Entry) -> bool:
        """Whether an entry's partition is still ours, without having been taken away in between."""
        return self._terms.get(entry.place) == entry.term

    def add(self, entry: Entry) -> None:
        """Take note of what was read."""
        if entry.due_at is None:
            self._ready.append(entry)
        else:
            heapq.heappush(self._later, (entry.due_at, next(self._turns), entry))

    def choose(self, limit: int, *, now: datetime) -> list[Entry]:
        """Up to `limit` entries that may start now: of one key only the first, and none before its time."""
        while self._later and self._later[0][0] <= now:
            self._ready.append(heapq.heappop(self._later)[2])
        chosen: list[Entry] = []
        far: list[Entry] = []
        while self._ready and len(chosen) < limit:
            entry = self._ready.popleft()
            key = entry.message.key
            if not self.windows[entry.place].reaches(entry.offset):
                far.append(entry)
            elif key is not None and key in self._busy:
                self._behind.setdefault(key, deque()).append(entry)
            else:
                chosen.append(entry)
                if key is not None:
                    self._busy.add(key)
        self._ready.extendleft(reversed(far))
        return chosen

    def unchoose(self, entries: Sequence[Entry]) -> None:
        """Put back what was chosen and not handed out, or handed back."""
        for entry in reversed(entries):
            self._free(entry.message.key)
            if self.has(entry):
                self._ready.appendleft(entry)

    def hand_out(self, entries: Iterable[Entry], *, owner: str, now: datetime, until: datetime) -> list[Entry]:
        """Put entries into the hands of a worker: each under a token of its own."""
        handed = [replace(entry, token=next(_tokens), lease=Lease(owner, now, until)) for entry in entries]
        self.in_hand.update((entry.token, entry) for entry in handed)
        return handed

    def let_go(self, entry: Entry) -> None:
        """Its run has ended; the next one of its key may start."""
        self.in_hand.pop(entry.token, None)
        self._free(entry.message.key)

    def extend(self, token: int | str, *, until: datetime) -> bool:
        """Renew a lease; False if it is lost."""
        entry = self.in_hand.get(token)
        if entry is None or entry.lease is None:
            return False
        entry.lease = entry.lease._replace(until=until)
        return True

    def overdue(self, now: datetime) -> list[Entry]:
        """What is in the hands of somebody who is not heard of any more."""
        return [entry for entry in self.in_hand.values() if entry.lease is not None and entry.lease.until <= now]

    def remember(self, token: int | str, answer: Settled) -> None:
        self.answers[token] = answer
        if len(self.answers) > _REMEMBERED:
            del self.answers[next(iter(self.answers))]

    def leave(self, places: Iterable[Place]) -> None:
        """Forget everything of partitions that are no longer ours."""
        gone = set(places)
        for place in gone:
            self.windows.pop(place, None)
            self._terms.pop(place, None)
        for entry in [entry for entry in self.in_hand.values() if entry.place in gone]:
            self.let_go(entry)
        self.suspects = [entry for entry in self.suspects if entry.place not in gone]
        self.delayed = [entry for entry in self.delayed if entry.place not in gone]
        self._ready = deque(entry for entry in self._ready if entry.place not in gone)
        self._later = [row for row in self._later if row[2].place not in gone]
        heapq.heapify(self._later)
        for key in list(self._behind):
            self._behind[key] = deque(entry for entry in self._behind[key] if entry.place not in gone)
            if not self._behind[key]:
                del self._behind[key]

    def _free(self, key: bytes | None) -> None:
        if key is None:
            return
        self._busy.discard(key)
        behind = self._behind.get(key)
        if behind:
            self._ready.appendleft(behind.popleft())
            if not behind:
                del self._behind[key]


def offsets_of(entries: Iterable[Entry]) -> Iterator[tuple[Place, list[int]]]:
    """The offsets of entries, by partition."""
    found: dict[Place, list[int]] = {}
    for entry in entries:
        found.setdefault(entry.place, []).append(entry.offset)
    yield from found.items()
