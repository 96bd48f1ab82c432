"""What one fetch handed out of one partition."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby, repeat
from typing import TYPE_CHECKING, Final, TypeAlias

from redrive.brokers.kafka.entry import Entry, Lease
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.window import row_of
from redrive.core.delivery import Delivery
from redrive.core.outcome import DONE, Settled

if TYPE_CHECKING:
    from redrive.core.message import Message

_new: Final = tuple.__new__  # at a third of the cost of calling the class


class Handful:
    """Messages of one partition that are handed out together. A message and this make one handing-over: a token.

    `held` are those in hand, by offset; what is new stands there as its message only. Most leave it as they came, all
    at once and well; the others are noted: in `gone` what was lost or handed back, in `answers` what was answered.
    """

    __slots__ = ("answers", "gone", "held", "is_new", "lease", "owner", "renewed", "share")

    def __init__(self, share: Share, owner: object) -> None:
        self.share = share
        self.owner = owner  # whose hands they are
        self.held: dict[int, Message | Entry] = {}
        self.is_new = True  # nothing has happened to any of them but that it was read
        self.lease: Lease | None = None
        self.renewed: dict[int, datetime] = {}  # until when
        self.gone: set[int] = set()
        self.answers: dict[int, Settled] = {}

    def entry(self, offset: int) -> Entry:
        """One that is in hand, with all that is known of it."""
        found = self.held[offset]
        return found if isinstance(found, Entry) else Entry(found, self.share, offset)

    def lose(self, offset: int) -> Entry | None:
        """Whoever had it has no claim to it any more; None if it was not in hand."""
        if offset not in self.held:
            return None
        entry = self.entry(offset)
        del self.held[offset]
        self.gone.add(offset)
        return entry

    def has(self, offsets: Sequence[int]) -> bool:
        """Whether all of these are in hand, and none stands there twice."""
        if self.is_all(offsets):
            return True
        wanted = {*offsets}
        return len(wanted) == len(offsets) and self.held.keys() >= wanted

    def is_all(self, offsets: Sequence[int]) -> bool:
        """Whether these are all that is in hand, in their order, as most end."""
        return len(offsets) == len(self.held) and offsets == [*self.held]

    def answer(self, offset: int) -> Settled | None:
        """What was answered to a settlement before, of one that is not in hand; None if it was lost."""
        return None if offset in self.gone else self.answers.get(offset, DONE)

    def overdue(self, now: datetime) -> list[int]:
        """What is in the hands of somebody who is not heard of any more."""
        if self.lease is None or self.lease.until > now:  # it is renewed to a later time only
            return []
        until = self.lease.until
        return [offset for offset in self.held if self.renewed.get(offset, until) <= now]

    def deliveries(self, group: str, *, now: datetime) -> list[Delivery]:
        """What a worker gets. The token of each is this handful and its offset."""
        if self.is_new:
            told = map(repeat, (group, now, 0, 0, 0, None, None, None, b"", False, None))
            tokens = zip(repeat(self), self.held, strict=False)
            rows = zip(self.held.values(), *told, tokens, repeat(None), strict=False)
            return [*map(_new, repeat(Delivery), rows)]
        return [self.entry(offset).delivery(group, now=now, token=(self, offset)) for offset in self.held]


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
        offsets[handful.share] = some if before is None else [*before, *some]
    return {share: row_of(some) for share, some in offsets.items()}
