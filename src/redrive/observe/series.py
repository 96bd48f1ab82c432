"""The series of a metric: one for each combination of label values, few, bounded, and fit to be shown.

What strangers put into labels (an exception's name, a code, a field of a payload) may be long, endless in kind, or hold
anything: it is cut, escaped, and beyond a limit counted together as `other`.
"""

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Sequence
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from redrive.core.printable import printable
from redrive.observe.table import Row

VALUES: Final = 200
"""How many values of a label a process counts by name."""
SERIES: Final = 2_000
"""How many combinations of such values a metric has by name."""
OTHER: Final = "other"
LONGEST: Final = 128

BOUNDED: Final = frozenset({"error_type", "error_code", "failure_reason"})
"""Labels whose values come from strangers; the user's own label is one too."""


class Series(dict[tuple[str, ...], Any]):
    """A metric's children by label values: made once, then a dictionary lookup. Safe from any thread.

    Never more than the limits: what is not counted under its own name is not kept either.
    """

    def __init__(self, row: Row, registry: CollectorRegistry, *, bounded: frozenset[str] = BOUNDED) -> None:
        super().__init__()
        self._metric = _made(row, registry)
        self._bounded = tuple(place for place, label in enumerate(row.labels) if label in bounded)
        self._names: dict[int, set[str]] = {place: set() for place in self._bounded}
        self._shown: set[tuple[str, ...]] = set()
        if not row.labels:
            self[()] = self._metric

    def recall(self, labels: tuple[str, ...]) -> None:
        """Hear of a series that there is already: it takes part in the limits."""
        self._within_limits(list(labels))

    def __missing__(self, labels: tuple[str, ...]) -> Any:
        shown = self._within_limits([printable(value[:LONGEST]) for value in labels])
        child = self._metric.labels(*shown)
        if shown == labels:
            self[labels] = child
        return child

    def _within_limits(self, labels: list[str]) -> tuple[str, ...]:
        if not self._bounded:
            return tuple(labels)
        for place in self._bounded:
            names = self._names[place]
            if len(names) < VALUES:
                names.add(labels[place])
            elif labels[place] not in names:
                labels[place] = OTHER
        if len(self._shown) >= SERIES and tuple(labels) not in self._shown:
            for place in self._bounded:
                labels[place] = OTHER
        self._shown.add(tuple(labels))
        return tuple(labels)


class BulkHistogram(Histogram):
    """A histogram that takes many observations in one step for each of its buckets."""

    def observe_times(self, amount: float, times: int) -> None:
        """Observe an amount so many times."""
        self._buckets[bisect_left(self._upper_bounds, amount)].inc(times)
        if amount:
            self._sum.inc(amount * times)

    def observe_many(self, amounts: Sequence[tuple[float, int]]) -> None:
        """Observe amounts, each so many times."""
        if len(amounts) == 1:
            self.observe_times(*amounts[0])
            return
        tally: Tally[int] = Tally()
        total = 0.0
        for amount, times in amounts:
            tally[bisect_left(self._upper_bounds, amount)] += times
            total += amount * times
        for place, times in tally.items():
            self._buckets[place].inc(times)
        if total:
            self._sum.inc(total)


def _made(row: Row, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    if row.kind == "counter":
        return Counter(row.name, row.help, row.labels, registry=registry)
    if row.kind == "gauge":
        across: Any = "livesum" if row.adds_up else "livemax"
        return Gauge(row.name, row.help, row.labels, registry=registry, multiprocess_mode=across)
    return BulkHistogram(row.name, row.help, row.labels, registry=registry, buckets=row.buckets)
