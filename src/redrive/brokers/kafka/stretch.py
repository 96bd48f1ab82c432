"""What was read and waits for nothing but a lane."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, repeat
from typing import Any, Final, TypeAlias

from confluent_kafka import Message as ClientMessage

from redrive.brokers.kafka.entry import Entry
from redrive.brokers.kafka.record import at_millis
from redrive.brokers.kafka.share import Share
from redrive.core.message import Headers, Message

_new: Final = tuple.__new__  # at a third of the cost of calling the class


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """New messages of one partition that follow each other, from `offset` on: read, kept and chosen as one.

    They stay what the client found; `keys` and `headers` are None if no message has one.
    """

    share: Share
    offset: int
    found: Sequence[Any]
    bodies: Sequence[bytes]
    keys: Sequence[bytes | None] | None = None
    headers: Sequence[Headers] | None = None

    @property
    def size(self) -> int:
        """How many they are."""
        return len(self.bodies)

    @property
    def end(self) -> int:
        """One beyond the last offset."""
        return self.offset + len(self.bodies)

    def split(self, count: int) -> tuple["Stretch", "Stretch | None"]:
        """So many of them, and the rest."""
        if count >= self.size:
            return self, None
        return self._part(0, count), self._part(count, self.size)

    def _part(self, start: int, stop: int) -> "Stretch":
        return Stretch(
            self.share,
            self.offset + start,
            self.found[start:stop],
            self.bodies[start:stop],
            self.keys and self.keys[start:stop],
            self.headers and self.headers[start:stop],
        )

    def message(self, offset: int) -> Message:
        """The one at an offset."""
        share, place = self.share, offset - self.offset
        headers = () if self.headers is None else self.headers[place]
        key = None if self.keys is None else self.keys[place]
        at = at_millis(self.found[place].timestamp()[1])
        topic = share.place[0]
        made: Message = _new(
            Message, (f"{share.prefix}{offset}", topic, self.bodies[place], headers, key, at, None, "")
        )
        return made

    def entries(self) -> Iterator[Entry]:
        """All of them, each by itself."""
        numbered = enumerate(self.messages(0, self.size), self.offset)
        return (Entry(message, self.share, offset) for offset, message in numbered)

    def messages(self, start: int, stop: int) -> list[Message]:
        """Some of them, column by column."""
        topic, prefix = self.share.place[0], self.share.prefix
        ids = [f"{prefix}{offset}" for offset in range(self.offset + start, self.offset + stop)]
        times: list[Any] = []
        stamps = map(ClientMessage.timestamp, self.found[start:stop])
        for (_, stamp), some in groupby(stamps):  # who was sent together shares an instant
            times += [at_millis(stamp)] * len([*some])
        keys = repeat(None) if self.keys is None else self.keys[start:stop]
        headers = repeat(()) if self.headers is None else self.headers[start:stop]
        columns = (ids, repeat(topic), self.bodies[start:stop], headers, keys, times, repeat(None), repeat(""))
        return [*map(_new, repeat(Message), zip(*columns, strict=False))]


Waiting: TypeAlias = Entry | Stretch


class Line:
    """Stretches and single entries in the order in which they may start. `size` is how many messages that are."""

    def __init__(self, items: Iterable[Waiting] = ()) -> None:
        self._items: Final = deque(items)
        self.size = sum(map(_size, self._items))

    def __bool__(self) -> bool:
        return bool(self._items)

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self._items)

    def append(self, item: Waiting) -> None:
        """Behind all others."""
        self._items.append(item)
        self.size += _size(item)

    def appendleft(self, item: Waiting) -> None:
        """Before all others."""
        self._items.appendleft(item)
        self.size += _size(item)

    def popleft(self) -> Waiting:
        """Take the first."""
        item = self._items.popleft()
        self.size -= _size(item)
        return item

    def ours(self) -> "Line":
        """The same without what is of partitions that are no longer ours."""
        return Line(item for item in self._items if item.share.is_ours)


def _size(item: Waiting) -> int:
    return item.size if isinstance(item, Stretch) else 1
