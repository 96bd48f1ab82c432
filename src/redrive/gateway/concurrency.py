"""How many calls may be in flight: as many as do good, found out by trying; none while the gate is closed."""

from datetime import datetime
from typing import Final

FIRST: Final = 8
SLOWLY: Final = 0.25


class Concurrency:
    """The slots of one scope, and its gate.

    The limit starts low and grows with success: by one for each answer below the `threshold`, so that it doubles in a
    round trip, and beyond it by one in four round trips. Overload halves it, once for all calls that were in flight
    together. A closed gate opens with a single slot.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.in_flight = 0
        self.closed_until: datetime | None = None
        self._limit = float(min(FIRST, most))
        self._threshold = float(most)
        self._cut_at: datetime | None = None

    @property
    def limit(self) -> int:
        """How many calls may be in flight now."""
        return int(self._limit)

    @property
    def is_full(self) -> bool:
        """True if no slot is free."""
        return self.in_flight >= self.limit

    def closed(self, now: datetime) -> datetime | None:
        """When the gate opens, or None if it is open."""
        if self.closed_until is not None and self.closed_until <= now:
            self.closed_until = None
        return self.closed_until

    def succeeded(self) -> None:
        """An answer has come; the limit grows, if it is what held the others back."""
        if self.in_flight + 1 < self.limit or self._limit >= self.most:
            return
        step = 1.0 if self._limit < self._threshold else SLOWLY / self._limit
        self._limit = min(self._limit + step, float(self.most))

    def overloaded(self, *, started_at: datetime, now: datetime) -> None:
        """A call that was started then met an overload. Of those in flight together only the first one counts."""
        if self._cut_at is not None and started_at <= self._cut_at:
            return
        self._cut_at = now
        if self.limit > 1:  # else there is nothing to learn from it
            self._limit = self._threshold = max(1.0, self._limit / 2)

    def close(self, until: datetime, *, started_at: datetime, now: datetime) -> None:
        """Start nothing until then; of several such times the latest counts. After it: one call, then more."""
        self.overloaded(started_at=started_at, now=now)
        self._limit = 1.0
        if self.closed_until is None or until > self.closed_until:
            self.closed_until = until

    def restart(self) -> None:
        """Begin again with one call, and as fast as at first: an outage says nothing about how many do good."""
        self._limit = 1.0
        self._threshold = max(self._threshold, float(min(FIRST, self.most)))
