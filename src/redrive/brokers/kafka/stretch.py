"""What was read and waits for nothing but a lane."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from redrive.brokers.kafka.entry import Entry
from redrive.brokers.kafka.share import Share
from redrive.core.message import Message


class Stretch(NamedTuple):
    """New messages of one partition that follow each other, from `offset` on: read, kept and chosen as one."""

    share: Share
    offset: int
    messages: list[Message]
    has_keys: bool

    def split(self, count: int) -> tuple["Stretch", "Stretch | None"]:
        """So many of them, and the rest."""
        if count >= len(self.messages):
            return self, None
        rest = self._replace(offset=self.offset + count, messages=self.messages[count:])
        return self._replace(messages=self.messages[:count]), rest


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
    return len(item.messages) if isinstance(item, Stretch) else 1
