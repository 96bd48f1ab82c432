"""What a group knows of one partition beyond its committed offset: which messages may have started, which are done.

Kafka commits one offset; messages end in any order. The rest is written into the commit's own metadata, as two bit maps
that begin at that offset, with the name of whoever has handed messages out.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

SPAN: Final = 8192
"""How far beyond the lowest unfinished message others may run: two maps of it stay below the 4096 bytes of metadata."""
_MASK: Final = (1 << SPAN) - 1
_FORM: Final = "rd1"


class Window(NamedTuple):
    """One partition: `low` is the lowest offset not known to be done; the maps begin there."""

    low: int
    handed: int = 0
    done: int = 0

    @property
    def end(self) -> int:
        """Beyond this offset nothing is written down."""
        return self.low + max(self.handed.bit_length(), self.done.bit_length())

    def hand(self, offsets: Iterable[int]) -> "Window":
        """These may have started."""
        return self._replace(handed=self.handed | self._bits(offsets))

    def release(self, offsets: Iterable[int]) -> "Window":
        """These have not."""
        return self._replace(handed=self.handed & ~self._bits(offsets))

    def finish(self, offsets: Iterable[int]) -> "Window":
        """These are done, or have never been messages; `low` moves up as far as it can."""
        bits = self._bits(offsets)
        return self._raised(self.handed & ~bits, self.done | bits)

    def skip(self, start: int, end: int) -> "Window":
        """Nothing between these offsets is a message: the marks of transactions take up places too."""
        if end <= max(start, self.low):
            return self
        start = max(start, self.low)
        return self._raised(self.handed, self.done | ((1 << end - start) - 1) << start - self.low)

    def is_done(self, offset: int) -> bool:
        """Whether nothing is left to do there."""
        return offset < self.low or bool(self.done >> offset - self.low & 1)

    def is_handed(self, offset: int) -> bool:
        """Whether this one may have started."""
        return offset >= self.low and bool(self.handed >> offset - self.low & 1)

    def reaches(self, offset: int) -> bool:
        """Whether there is room in the maps for this offset."""
        return offset - self.low < SPAN

    def dump(self, owner: str) -> str:
        """The metadata of a commit; without an owner, nobody has the partition."""
        return f"{_FORM}:{owner}:{_text(self.handed)}:{_text(self.done)}"

    def _bits(self, offsets: Iterable[int]) -> int:
        """A map of these. Most come in unbroken rows, each of which is one step however long it is."""
        low, bits = self.low, 0
        if isinstance(offsets, range) and offsets.step == 1:
            return (1 << offsets.stop - low) - (1 << max(offsets.start - low, 0)) if offsets.stop > low else 0
        for start, end in _rows(sorted(set(offsets))):
            if end > low:
                first = max(start, low)
                bits |= (1 << end - first) - 1 << first - low
        return bits

    def _raised(self, handed: int, done: int) -> "Window":
        steps = ((done + 1) & ~done).bit_length() - 1
        return Window(self.low + steps, handed >> steps, done >> steps)


def load_window(offset: int, metadata: str | None) -> tuple[Window, str]:
    """A window and its owner, from a commit. A commit of others is one with nothing beyond its offset."""
    form, _, rest = (metadata or "").partition(":")
    try:
        owner, handed, done = rest.split(":") if form == _FORM else ("", "", "")
        return Window(offset, _number(handed), _number(done)), owner
    except ValueError:
        return Window(offset), ""


def row_of(offsets: Sequence[int]) -> Sequence[int]:
    """The same offsets, as a range if they are a row in some order: that is one step of a map, however long it is."""
    if isinstance(offsets, range):
        return offsets
    row = range(offsets[0], offsets[0] + len(offsets))
    if offsets == [*row]:
        return row
    in_order = sorted(offsets)
    row = range(in_order[0], in_order[0] + len(in_order))
    return row if in_order == [*row] else in_order


def _rows(offsets: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Rows of offsets that follow each other: first, and one beyond the last."""
    if not offsets:
        return
    first, last = offsets[0], offsets[-1]
    if last - first + 1 == len(offsets):
        yield first, last + 1
        return
    before = first
    for offset in offsets[1:]:
        if offset > before + 1:
            yield first, before + 1
            first = offset
        before = offset
    yield first, before + 1


def _text(number: int) -> str:
    kept = number & _MASK
    return b64encode(kept.to_bytes((kept.bit_length() + 7) // 8, "little")).decode()


def _number(text: str) -> int:
    return int.from_bytes(b64decode(text, validate=True), "little")
