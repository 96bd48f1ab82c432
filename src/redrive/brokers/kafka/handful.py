"""What one fetch handed out of one partition."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Final, TypeAlias

from redrive.brokers.kafka.bundle import StretchInHand
from redrive.brokers.kafka.entry import Entry, Lease
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.span import Span
from redrive.brokers.kafka.window import row_of
from redrive.core.delivery import Delivery
from redrive.core.outcome import DONE, Settled
from redrive.core.row import InRows, Row

_MUCH: Final = 8


class Handful:
    """Messages of one partition that are handed out together. A message and this make one handing-over: a token.

    `held` are those in hand, by offset: a stretch as it was read, or what was chosen one by one. Most leave it as they
    came, in rows and well; others are noted: in `gone` what was lost or handed back, in `answers` what was answered.
    """

    __slots__ = ("answers", "gone", "held", "lease", "owner", "renewed", "share")

    def __init__(self, share: Share, owner: object, held: Span | None = None) -> None:
        self.share = share
        self.owner = owner  # whose hands they are
        self.held: Span | dict[int, Entry] = {} if held is None else held
        self.lease: Lease | None = None
        self.renewed: dict[int, datetime] = {}  # until when
        self.gone: set[int] = set()
        self.answers: dict[int, Settled] = {}

    def hold(self, entries: Iterable[Entry]) -> int:
        """Have more in hand, chosen one by one; how many they are."""
        assert isinstance(self.held, dict)  # noqa: S101 - a stretch stays by itself
        before = len(self.held)
        self.held.update((entry.offset, entry) for entry in entries)
        return len(self.held) - before

    def entry(self, offset: int) -> Entry:
        """One that is in hand, with all that is known of it."""
        found = self.held[offset]
        return found if isinstance(found, Entry) else Entry(found, self.share, offset)

    @property
    def offsets(self) -> Sequence[int]:
        """Those in hand, in the order in which they were chosen."""
        return self.held.offsets if isinstance(self.held, Span) else [*self.held]

    def lose(self, offset: int) -> Entry | None:
        """Whoever had it has no claim to it any more; None if it was not in hand."""
        if offset not in self.held:
            return None
        entry = self.entry(offset)
        self.let_go([offset])
        self.gone.add(offset)
        return entry

    def has(self, offsets: Sequence[int]) -> bool:
        """Whether all of these are in hand, and none stands there twice."""
        if isinstance(self.held, Span) and isinstance(row := row_of(offsets), range):
            return self.held.has(row)
        wanted = {*offsets}
        return len(wanted) == len(offsets) and self.held.keys() >= wanted

    def let_go(self, offsets: Sequence[int]) -> Iterable[bytes | None]:
        """These are no longer in hand; the keys of those that have one."""
        held = self.held
        if isinstance(held, Span):
            keys = held.leave(row_of(offsets))
            if len(held) * _MUCH < held.stretch.size:  # a few slow ones do not keep the bodies of all others
                self.held = {offset: self.entry(offset) for offset in held}
            return keys
        return [ended.message.key for offset in offsets if (ended := held.pop(offset, None)) is not None]

    def answer(self, offset: int) -> Settled | None:
        """What was answered to a settlement before, of one that is not in hand; None if it was lost."""
        return None if offset in self.gone else self.answers.get(offset, DONE)

    def overdue(self, now: datetime) -> list[int]:
        """What is in the hands of somebody who is not heard of any more."""
        if self.lease is None or self.lease.until > now:  # it is renewed to a later time only
            return []
        until = self.lease.until
        return [offset for offset in self.offsets if self.renewed.get(offset, until) <= now]

    def deliveries(self, group: str, *, now: datetime) -> list[Delivery]:
        """What a worker gets of what was chosen one by one. The token of each is this handful and its offset."""
        return [self.entry(offset).delivery(group, now=now, token=(self, offset)) for offset in self.held]

    def row(self, group: str, *, now: datetime) -> Row | None:
        """What a worker gets of a stretch, if all of it is in hand."""
        if not isinstance(self.held, Span) or len(self.held) < self.held.stretch.size:
            return None
        return Row(StretchInHand(self, self.held.stretch, group, now), 0, len(self.held))


def handed_out(handfuls: Sequence[Handful], group: str, *, now: datetime) -> InRows:
    """What a worker gets: in rows what nothing has happened to but that it was read."""
    rows: list[Row] = []
    single: list[Delivery] = []
    for handful in handfuls:
        row = handful.row(group, now=now)
        if row is None:
            single += handful.deliveries(group, now=now)
        else:
            rows.append(row)
    return InRows(rows, single)


Token: TypeAlias = tuple[Handful, int]
Found: TypeAlias = Mapping[Handful, Sequence[int]]
"""Offsets of what is in hand, by handful."""


def by_handful(tokens: Iterable[Token]) -> dict[Handful, list[int]]:
    """The offsets of tokens. Most come in rows of one handful."""
    found: dict[Handful, list[int]] = {}
    handfuls, offsets = zip(*tokens, strict=True)
    start = 0
    for handful, some in groupby(handfuls):
        end = start + len([*some])
        found.setdefault(handful, []).extend(offsets[start:end])
        start = end
    return found


def by_row(rows: Iterable[Row]) -> dict[Handful, Sequence[int]] | None:
    """The offsets of rows; None if some are not ours."""
    found: dict[Handful, Sequence[int]] = {}
    for row in rows:
        bundle = row.bundle
        if not isinstance(bundle, StretchInHand):
            return None
        offsets = range(bundle.first + row.start, bundle.first + row.stop)
        before = found.get(bundle.handful)
        found[bundle.handful] = offsets if before is None else together(before, offsets)
    return found


def together(some: Sequence[int], others: Sequence[int]) -> Sequence[int]:
    """Offsets and others of the same partition."""
    if isinstance(some, range) and isinstance(others, range) and some.stop == others.start:
        return range(some.start, others.stop)
    return [*some, *others]


def joined(found: Found, others: Found) -> Found:
    """Both."""
    both = dict(found)
    for handful, offsets in others.items():
        both[handful] = together(both[handful], offsets) if handful in both else offsets
    return both


def by_share(entries: Iterable[Entry]) -> dict[Share, list[int]]:
    """The offsets of entries, by partition."""
    found: dict[Share, list[int]] = {}
    for entry in entries:
        found.setdefault(entry.share, []).append(entry.offset)
    return found


def noted(found: Found) -> dict[Share, Sequence[int]]:
    """The same by partition, as it is written down."""
    offsets: dict[Share, Sequence[int]] = {}
    for handful, some in found.items():
        before = offsets.get(handful.share)
        offsets[handful.share] = some if before is None else together(before, some)
    return {share: row_of(some) for share, some in offsets.items()}
