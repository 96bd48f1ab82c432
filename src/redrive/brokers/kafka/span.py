"""What is in hand of a stretch: all of it at first, and most of it leaves in rows."""

from collections.abc import Iterator, Mapping, Sequence

from redrive.brokers.kafka.stretch import Stretch
from redrive.core.message import Message


class Span(Mapping[int, Message]):
    """Messages by offset, each made when somebody looks at it."""

    __slots__ = ("_end", "_gone", "_low", "stretch")

    def __init__(self, stretch: Stretch) -> None:
        self.stretch = stretch
        self._low, self._end = stretch.offset, stretch.end
        self._gone: set[int] = set()  # beyond `_low`

    def __len__(self) -> int:
        return self._end - self._low - len(self._gone)

    def __contains__(self, offset: object) -> bool:
        return isinstance(offset, int) and self._low <= offset < self._end and offset not in self._gone

    def __iter__(self) -> Iterator[int]:
        return iter(self.offsets)

    def __getitem__(self, offset: int) -> Message:
        if offset not in self:
            raise KeyError(offset)
        return self.stretch.message(offset)

    @property
    def offsets(self) -> Sequence[int]:
        """Those that are left, in their order."""
        left = range(self._low, self._end)
        return [offset for offset in left if offset not in self._gone] if self._gone else left

    def has(self, row: range) -> bool:
        """Whether all of a row are left."""
        return self._low <= row.start and row.stop <= self._end and self._gone.isdisjoint(row)

    def leave(self, offsets: Sequence[int]) -> Sequence[bytes | None]:
        """These are no longer in hand, if they were; their keys, if any message of the stretch has one."""
        if not (isinstance(offsets, range) and self.has(offsets)):
            offsets = [offset for offset in offsets if offset in self]
        if isinstance(offsets, range) and offsets.start == self._low and not self._gone:
            self._low = offsets.stop
        else:
            self._gone.update(offsets)
            while self._low in self._gone:
                self._gone.discard(self._low)
                self._low += 1
        keys, first = self.stretch.keys, self.stretch.offset
        return () if keys is None else [keys[offset - first] for offset in offsets]
