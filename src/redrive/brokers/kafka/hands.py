"""What this process has of a group's work: read and waiting for a lane, waiting for its time, or in hand."""

import heapq
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Final

from redrive.brokers.kafka.entry import Entry, Lease
from redrive.brokers.kafka.handful import Found, Handful, Token
from redrive.brokers.kafka.record import Place
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.span import Span
from redrive.brokers.kafka.stretch import Line, Stretch, Waiting
from redrive.brokers.kafka.window import SPAN
from redrive.core.outcome import Settled

_REMEMBERED: Final = 10_000  # answers to suspects, kept for settlements that are sent twice


class Hands:
    """The partitions that are ours now, and their messages. Not safe for threads."""

    def __init__(self) -> None:
        self.shares: dict[Place, Share] = {}
        self.suspects: list[Entry] = []  # to be moved into the book
        self.delayed: list[Entry] = []  # to be moved into the lane
        self.ready = Line()  # these wait for nothing but a lane
        self._handfuls: set[Handful] = set()  # of which some are in hand
        self._later: list[tuple[datetime, int, Entry]] = []
        self._turns = count()
        self._busy: set[bytes] = set()
        self._behind: dict[bytes, deque[Entry]] = {}
        self._answers: dict[str, Settled] = {}

    @property
    def are_empty(self) -> bool:
        """Whether nothing is in hand."""
        return not self._handfuls

    @property
    def in_hand(self) -> dict[Share, list[int]]:
        """The offsets of what is in hand."""
        found: dict[Share, list[int]] = {}
        for handful in self._handfuls:
            found.setdefault(handful.share, []).extend(handful.offsets)
        return found

    def hold(self, token: Token) -> bool:
        """Whether this one is in hand."""
        return token[0] in self._handfuls and token[1] in token[0].held

    def hold_all(self, found: Found) -> bool:
        """Whether all of these are in hand, and none stands there twice."""
        return self._handfuls.issuperset(found) and all(handful.has(offsets) for handful, offsets in found.items())

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

    def choose(self, limit: int, *, now: datetime) -> list[Handful]:
        """Up to `limit` messages that may start now: of one key only the first, and none before its time."""
        ready = self.ready
        while self._later and self._later[0][0] <= now:
            ready.append(heapq.heappop(self._later)[2])
        chosen: list[Handful] = []
        single: dict[Share, Handful] = {}
        far: list[Waiting] = []
        room = limit
        while ready and room > 0:
            item = ready.popleft()
            near = item.share.window.low + SPAN - item.offset
            if near <= 0:
                far.append(item)
                continue
            if isinstance(item, Stretch):
                item, rest = item.split(min(near, room))
                if rest is not None:
                    ready.appendleft(rest)
            room -= self._choose(item, chosen, single)
        for item in reversed(far):
            ready.appendleft(item)
        return [handful for handful in chosen if handful.held]

    def _choose(self, item: Waiting, chosen: list[Handful], single: dict[Share, Handful]) -> int:
        """Choose as many of these as may start; how many they are. What is chosen one by one joins its like."""
        if isinstance(item, Stretch) and self._may_start_all(item):
            chosen.append(Handful(item.share, self, Span(item)))
            return item.size
        handful = single.get(item.share)
        if handful is None:
            handful = single[item.share] = Handful(item.share, self)
            chosen.append(handful)
        entries = item.entries() if isinstance(item, Stretch) else [item]
        return handful.hold(entry for entry in entries if self._may_start(entry.message.key, entry))

    def _may_start_all(self, some: Stretch) -> bool:
        """Whether no two of a stretch have one key, and nobody of any of these is in hand."""
        if some.keys is None:
            return True
        keys = [key for key in some.keys if key is not None]
        distinct = {*keys}
        if len(distinct) < len(keys) or not self._busy.isdisjoint(distinct):
            return False
        self._busy |= distinct
        return True

    def _may_start(self, key: bytes | None, entry: Entry) -> bool:
        """Whether nobody of its key is in hand; else it waits behind."""
        if key is None:
            return True
        if key in self._busy:
            self._behind.setdefault(key, deque()).append(entry)
            return False
        self._busy.add(key)
        return True

    def unchoose(self, handfuls: Iterable[Handful]) -> None:
        """Put back what was chosen and not handed out."""
        self.take_back([(handful, offset) for handful in handfuls for offset in handful.offsets])

    def hand_out(self, handfuls: Iterable[Handful], *, lease: Lease) -> list[Handful]:
        """Put what was chosen into a worker's hands, but for what was lost meanwhile."""
        handed = []
        for handful in handfuls:
            if handful.share.is_ours:
                handful.lease = lease
                self._handfuls.add(handful)
                handed.append(handful)
            else:
                self.let_go({handful: handful.offsets})
        return handed

    def take_back(self, tokens: Sequence[Token]) -> None:
        """They are handed back. Whoever had them has no claim to them any more."""
        for handful, offset in reversed(tokens):
            entry = handful.lose(offset)
            if entry is not None and entry.share.is_ours:
                self._busy.difference_update((entry.message.key,))  # what waits behind it goes on doing so
                self.ready.appendleft(entry)
            elif entry is not None:
                self._free(entry.message.key)
            if not handful.held:
                self._handfuls.discard(handful)

    def let_go(self, found: Found, answers: Mapping[Token, Settled] | None = None) -> None:
        """Their runs have ended; the next ones of their keys may start. `answers` are those that say more than done."""
        for token, answer in (answers or {}).items():
            token[0].answers[token[1]] = answer
        for handful, offsets in found.items():
            keys = handful.let_go(offsets)
            if not handful.held:
                self._handfuls.discard(handful)
            if self._busy:
                for key in keys:
                    self._free(key)

    def extend(self, token: Token, *, until: datetime) -> bool:
        """Renew a lease; False if it is lost."""
        if not self.hold(token):
            return False
        token[0].renewed[token[1]] = until
        return True

    def set_apart(self, now: datetime) -> None:
        """Make suspects of what is in the hands of those who are not heard of any more, in the order of the log."""
        overdue = {handful: offsets for handful in self._handfuls if (offsets := handful.overdue(now))}
        entries = [handful.entry(offset) for handful, offsets in overdue.items() for offset in offsets]
        for handful, offsets in overdue.items():
            handful.gone.update(offsets)
        self.let_go(overdue)
        self.suspects += sorted(entries, key=lambda entry: (entry.share.place, entry.offset))

    def remember(self, token: str, answer: Settled) -> None:
        """Keep the answer to a suspect's settlement for a while."""
        self._answers[token] = answer
        if len(self._answers) > _REMEMBERED:
            del self._answers[next(iter(self._answers))]

    def answer(self, token: Token | str) -> Settled | None:
        """What was answered to a settlement before, of what is not in hand."""
        if isinstance(token, str):
            return self._answers.get(token)
        return token[0].answer(token[1]) if token[0].owner is self else None

    def leave(self, places: Iterable[Place]) -> None:
        """Forget everything of partitions that are no longer ours."""
        gone = [share for place in places if (share := self.shares.pop(place, None)) is not None]
        if not gone:
            return
        for share in gone:
            share.is_ours = False
        # First of all what waits behind a key: what is let go brings forth the next that is ours.
        self._behind = {key: deque(ours) for key, behind in self._behind.items() if (ours := _ours(behind))}
        lost = {handful: handful.offsets for handful in self._handfuls if not handful.share.is_ours}
        for handful, offsets in lost.items():
            handful.gone.update(offsets)
        self.let_go(lost)
        self.suspects = _ours(self.suspects)
        self.delayed = _ours(self.delayed)
        self.ready = self.ready.ours()
        self._send_on()
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

    def _send_on(self) -> None:
        """Let go on what waits behind a key of which nobody is in hand or about to start."""
        starting = {item.message.key for item in self.ready if isinstance(item, Entry)}
        for key in self._behind.keys() - self._busy - starting:
            self._free(key)


def _ours(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.share.is_ours]
