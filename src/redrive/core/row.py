"""Deliveries that come in rows: new messages, each of which is looked at only if something happens to it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, overload

from redrive.core.delivery import Delivery


class Bundle(Protocol):
    """New messages that an adapter hands out together: none has failed, crashed, expired or waited before."""

    @property
    def bodies(self) -> Sequence[bytes]:
        """What their producers sent, in the order of the messages."""
        ...

    def deliveries(self, start: int, stop: int) -> list[Delivery]:
        """Some of them as deliveries: the same objects whenever they are asked for. May be called from any thread."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """Some messages of a bundle that follow each other."""

    bundle: Bundle
    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many they are."""
        return self.stop - self.start

    @property
    def bodies(self) -> list[bytes]:
        """What their producers sent: a list of its own."""
        return [*self.bundle.bodies[self.start : self.stop]]

    def from_(self, number: int) -> "Row":
        """Without the first so many."""
        return Row(self.bundle, self.start + number, self.stop)

    def first(self, number: int) -> "Row":
        """The first so many."""
        return Row(self.bundle, self.start, self.start + number)

    def delivery(self, number: int) -> Delivery:
        """The one with this number, from 0."""
        return self.bundle.deliveries(self.start + number, self.start + number + 1)[0]

    def deliveries(self) -> list[Delivery]:
        """All of them."""
        return self.bundle.deliveries(self.start, self.stop)


class InRows(Sequence[Any]):
    """Deliveries in rows, and `others` behind them. Whoever knows rows takes those; for others it is a plain sequence.

    Where outcomes are settled, rows are what went well, and others may be settlements.
    """

    __slots__ = ("_size", "others", "rows")

    def __init__(self, rows: Sequence[Row], others: Sequence[Any] = ()) -> None:
        self.rows = rows
        self.others = others
        self._size = sum([row.size for row in rows])

    @property
    def in_rows(self) -> int:
        """How many are in the rows."""
        return self._size

    def __len__(self) -> int:
        return self._size + len(self.others)

    def __iter__(self) -> Iterator[Any]:
        return chain(chain.from_iterable(row.deliveries() for row in self.rows), self.others)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return [*self][index]


class Made:
    """A `Bundle` of deliveries that are there already."""

    __slots__ = ("_deliveries", "bodies")

    def __init__(self, deliveries: Sequence[Delivery]) -> None:
        self._deliveries = [*deliveries]
        self.bodies = [delivery.message.body for delivery in deliveries]

    def deliveries(self, start: int, stop: int) -> list[Delivery]:
        return self._deliveries[start:stop]


def in_rows(deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
    """The same, as a row if nothing has happened to any of them."""
    return InRows([Row(Made(deliveries), 0, len(deliveries))]) if all(map(_is_new, deliveries)) else deliveries


def _is_new(one: Delivery) -> bool:
    return not (one.failures or one.crashes or one.letter_id or one.alone or one.due_at or one.message.expires_at)
