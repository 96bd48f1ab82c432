"""What the workers of this process have in hand."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from redrive.brokers.rabbitmq.channels import is_open
from redrive.brokers.rabbitmq.entry import Entry
from redrive.brokers.rabbitmq.link import Tag
from redrive.brokers.rabbitmq.names import Place
from redrive.core.outcome import Settled


@dataclass(slots=True, eq=False)
class Hold:
    """One handing-over: the token of a delivery. The server's own fence is its channel: with it the tag dies."""

    entry: Entry
    place: Place
    source: str
    tag: Tag
    owner: str
    since: datetime
    until: datetime
    alone: bool = False
    answer: Settled | None = None
    is_lost: bool = False
    consumer: str | None = None

    @property
    def is_ours(self) -> bool:
        """Whether it can still be settled."""
        return self.answer is None and not self.is_lost and is_open(self.tag.channel)


@dataclass(slots=True)
class Hands:
    """Every hold of a process, by its identity."""

    _holds: dict[int, Hold] = field(default_factory=dict)

    def add(self, holds: Iterable[Hold]) -> None:
        self._holds.update((id(hold), hold) for hold in holds)

    def let_go(self, hold: Hold) -> None:
        self._holds.pop(id(hold), None)

    def of(self, place: Place, *, owner: str | None = None) -> Iterator[Hold]:
        """What is in hand of a group, or of one of its workers."""
        for hold in list(self._holds.values()):
            if not hold.is_ours:
                self.let_go(hold)
            elif hold.place == place and owner in (None, hold.owner):
                yield hold

    def on(self, source: str) -> Iterator[Hold]:
        """What is in hand of one queue of the server."""
        return (hold for hold in list(self._holds.values()) if hold.source == source and hold.is_ours)

    def broken(self, place: Place, owner: str) -> dict[str, Hold]:
        """What a worker still works on though its channel has ended, by the keys of the copies."""
        return {
            hold.entry.key: hold
            for hold in list(self._holds.values())
            if hold.place == place and hold.owner == owner and not hold.is_lost and hold.answer is None
        }

    def overdue(self, now: datetime) -> list[Hold]:
        """What is in the hands of somebody who is not heard of any more."""
        return [hold for hold in list(self._holds.values()) if hold.until <= now and hold.is_ours]
