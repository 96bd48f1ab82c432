"""What this process has of a group's work: read and waiting for a lane, waiting for its time, or in hand."""

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count, groupby
from operator import attrgetter
from typing import Final

from redrive.brokers.kafka.entry import Entry, Lease
from redrive.brokers.kafka.record import Place
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.window import SPAN
from redrive.core.outcome import Settled

_REMEMBERED: Final = 10_000  # answers to suspects, kept for settlements that are sent twice
_share_of: Final = attrgetter("share")
_offset_of: Final = attrgetter("offset")


class Hands:
    """The partitions that are ours now, and their entries. Not safe for threads."""

    def __init__(self) -> None:
        self.shares: dict[Place, Share] = {}
        self.in_hand: set[Entry] = set()
        self.suspects: list[Entry] = []  # to be moved into the book
        self.delayed: list[Entry] = []  # to be moved into the lane
        self.ready: deque[Entry] = deque()  # these wait for nothing but a lane
        self._later: list[tuple[datetime, int, Entry]] = []
        self._turns = count()
        self._busy: set[bytes] = set()
        self._behind: dict[bytes, deque[Entry]] = {}
        self._answers: dict[str, Settled] = {}

    @property
    def next_due_at(self) -> datetime | None:
        return self._later[0][0] if self._later else None

    def come(self, shares: Iterable[Share]) -> None:
        """These partitions are ours from now on."""
        self.shares |= {share.place: share for share in shares}

    def add(self, entry: Entry) -> None:
        """Take note of what was read."""
        if entry.due_at is None:
            self.ready.append(entry)
        else:
            heapq.heappush(self._later, (entry.due_at, next(self._turns), entry))

    def choose(self, limit: int, *, now: datetime) -> list[Entry]:
        """Up to `limit` entries that may start now: of one key only the first, and none before its time."""
        ready, busy = self.ready, self._busy
        while self._later and self._later[0][0] <= now:
            ready.append(heapq.heappop(self._later)[2])
        chosen: list[Entry] = []
        far: list[Entry] = []
        while ready and len(chosen) < limit:
            entry = ready.popleft()
            key = entry.message.key
            if entry.offset - entry.share.window.low >= SPAN:
                far.append(entry)
            elif key is None:
                chosen.append(entry)
            elif key in busy:
                self._behind.setdefault(key, deque()).append(entry)
            else:
                chosen.append(entry)
                busy.add(key)
        ready.extendleft(reversed(far))
        return chosen

    def unchoose(self, entries: Sequence[Entry]) -> None:
        """Put back what was chosen and not handed out, or handed back."""
        for entry in reversed(entries):
            self._free(entry.message.key)
            if entry.share.is_ours:
                self.ready.appendleft(entry)

    def hand_out(self, entries: Iterable[Entry], *, lease: Lease) -> list[Entry]:
        """Put chosen entries into a worker's hands, each for the first time; but for those lost meanwhile."""
        handed = []
        for entry in entries:
            if entry.share.is_ours:
                entry.lease = lease
                handed.append(entry)
            else:
                self._free(entry.message.key)
        self.in_hand.update(handed)
        return handed

    def take_back(self, entries: Iterable[Entry]) -> None:
        """They are handed back. Whoever had them has no claim to them any more, so they go on as others."""
        kept = [entry for entry in entries if entry in self.in_hand]
        self.in_hand.difference_update(kept)
        self.unchoose([replace(entry, lease=None) for entry in kept])

    def let_go(self, entries: Sequence[Entry]) -> None:
        """Their runs have ended; the next ones of their keys may start."""
        self.in_hand.difference_update(entries)
        if self._busy:
            for entry in entries:
                self._free(entry.message.key)

    def extend(self, entry: Entry, *, until: datetime) -> bool:
        """Renew a lease; False if it is lost."""
        if entry not in self.in_hand or entry.lease is None:
            return False
        entry.lease = entry.lease._replace(until=until)
        return True

    def overdue(self, now: datetime) -> list[Entry]:
        """What is in the hands of somebody who is not heard of any more, in the order in which it was read."""
        found = (entry for entry in self.in_hand if entry.lease is not None and entry.lease.until <= now)
        return sorted(found, key=lambda entry: (entry.share.place, entry.offset))

    def remember(self, token: str, answer: Settled) -> None:
        """Keep the answer to a suspect's settlement for a while."""
        self._answers[token] = answer
        if len(self._answers) > _REMEMBERED:
            del self._answers[next(iter(self._answers))]

    def answer(self, token: Entry | str) -> Settled | None:
        """What was answered to a settlement before."""
        return token.answer if isinstance(token, Entry) else self._answers.get(token)

    def leave(self, places: Iterable[Place]) -> None:
        """Forget everything of partitions that are no longer ours."""
        gone = [share for place in places if (share := self.shares.pop(place, None)) is not None]
        if not gone:
            return
        for share in gone:
            share.is_ours = False
        # First of all what waits behind a key: what is let go brings forth the next that is ours.
        self._behind = {key: deque(ours) for key, behind in self._behind.items() if (ours := _ours(behind))}
        self.let_go([entry for entry in self.in_hand if not entry.share.is_ours])
        self.suspects = _ours(self.suspects)
        self.delayed = _ours(self.delayed)
        self.ready = deque(_ours(self.ready))
        self._later = [row for row in self._later if row[2].share.is_ours]
        heapq.heapify(self._later)

    def _free(self, key: bytes | None) -> None:
        if key is None:
            return
        self._busy.discard(key)
        behind = self._behind.get(key)
        if behind:
            self.ready.appendleft(behind.popleft())
            if not behind:
                del self._behind[key]


def _ours(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.share.is_ours]


def by_share(entries: Iterable[Entry]) -> dict[Share, list[int]]:
    """The offsets of entries, by partition. Most come in rows of one partition."""
    found: dict[Share, list[int]] = {}
    for share, row in groupby(entries, _share_of):
        offsets = found.get(share)
        if offsets is None:
            found[share] = list(map(_offset_of, row))
        else:
            offsets.extend(map(_offset_of, row))
    return found
