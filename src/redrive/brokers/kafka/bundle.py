"""A stretch in the hands of a worker."""

from datetime import datetime
from itertools import repeat
from typing import TYPE_CHECKING, Final

from redrive.brokers.kafka.stretch import Stretch
from redrive.core.delivery import Delivery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redrive.brokers.kafka.handful import Handful

_new: Final = tuple.__new__  # at a third of the cost of calling the class


class StretchInHand:
    """The `Bundle` of a handful. The token of each delivery is the handful and an offset."""

    __slots__ = ("_group", "_made", "_now", "_stretch", "handful")

    def __init__(self, handful: "Handful", stretch: Stretch, group: str, now: datetime) -> None:
        self.handful = handful
        self._stretch = stretch
        self._group = group
        self._now = now
        self._made: dict[int, Delivery] = {}

    @property
    def first(self) -> int:
        """The offset of the first message."""
        return self._stretch.offset

    @property
    def bodies(self) -> "Sequence[bytes]":
        return self._stretch.bodies

    def deliveries(self, start: int, stop: int) -> list[Delivery]:
        made = self._made
        if stop - start == 1:
            return [made.get(start) or made.setdefault(start, self._one(start))]
        told = map(repeat, (self._group, self._now, 0, 0, 0, None, None, None, b"", False, None))
        tokens = zip(repeat(self.handful), range(self.first + start, self.first + stop), strict=False)
        columns = (self._stretch.messages(start, stop), *told, tokens, repeat(None))
        news = map(_new, repeat(Delivery), zip(*columns, strict=False))
        return [*map(made.setdefault, range(start, stop), news)]  # whoever was first has made it

    def _one(self, number: int) -> Delivery:
        offset = self.first + number
        message, token = self._stretch.message(offset), (self.handful, offset)
        told = (message, self._group, self._now, 0, 0, 0, None, None, None, b"", False, None, token, None)
        made: Delivery = _new(Delivery, told)
        return made
