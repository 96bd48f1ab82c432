"""A limit per minute that holds in every minute: what was sent in the last one is remembered, one by one."""

from collections import deque
from datetime import datetime, timedelta
from typing import Final

SPAN: Final = timedelta(seconds=61)
"""A minute, and a second for those that are long on their way: the provider counts when they arrive."""


class Reservation:
    """So much of the limit, taken at its time. The amount is corrected when the real one is known."""

    __slots__ = ("amount", "at")

    def __init__(self, amount: int, at: datetime) -> None:
        self.amount = amount
        self.at = at


class MinuteWindow:
    """How much of a limit is left. Never more than `limit` in any minute, as far as the amounts are right."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken: deque[Reservation] = deque()
        self._sum = 0

    def room_at(self, amount: int, *, now: datetime) -> datetime | None:
        """None if there is room for `amount` now, else the earliest time to ask again."""
        while self._taken and self._taken[0].at + SPAN <= now:
            self._sum -= self._taken.popleft().amount
        if self._sum + amount <= self.limit or not self._taken:
            return None
        return self._taken[0].at + SPAN

    def reserve(self, amount: int, *, now: datetime) -> Reservation:
        """Take so much of it."""
        taken = Reservation(amount, now)
        self._taken.append(taken)
        self._sum += amount
        return taken

    def correct(self, taken: Reservation, amount: int) -> None:
        """It was another amount than was reserved."""
        if self._taken and taken.at >= self._taken[0].at:  # it still counts
            self._sum += amount - taken.amount
        taken.amount = amount

    @property
    def used(self) -> int:
        """How much is taken."""
        return self._sum
