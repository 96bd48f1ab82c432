"""A limit per minute that holds in every minute: what was sent in the last one is remembered, moment by moment."""

from collections import deque
from datetime import datetime, timedelta
from typing import Final

SPAN: Final = timedelta(seconds=61)
"""A minute, and a second for those that are long on their way: the provider counts when they arrive."""

MOMENT: Final = timedelta(milliseconds=100)
"""What is taken within so long is remembered as one: a busy minute has thousands of requests, and 600 moments."""


class Moment:
    """What was taken of a limit between two times: so much counts until a minute after the later one."""

    __slots__ = ("amount", "began_at", "ended_at")

    def __init__(self, now: datetime) -> None:
        self.amount = 0
        self.began_at = self.ended_at = now


class MinuteWindow:
    """How much of a limit is left. Never more than `limit` in any minute, as far as the amounts are right."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken: deque[Moment] = deque()
        self._sum = 0

    def room_at(self, amount: int, *, now: datetime) -> datetime | None:
        """None if there is room for `amount` now, else the earliest time to ask again."""
        taken = self._taken
        while taken and taken[0].ended_at + SPAN <= now:
            self._sum -= taken.popleft().amount
        if self._sum + amount <= self.limit or not taken:
            return None
        return taken[0].ended_at + SPAN

    def reserve(self, amount: int, *, now: datetime) -> Moment:
        """Take so much of it; return the moment that it counts for."""
        taken = self._taken
        if not taken or now - taken[-1].began_at >= MOMENT:
            taken.append(Moment(now))
        moment = taken[-1]
        moment.ended_at = now
        moment.amount += amount
        self._sum += amount
        return moment

    def correct(self, moment: Moment, more: int) -> None:
        """It was so much more than was reserved then, or less."""
        if self._taken and moment.began_at >= self._taken[0].began_at:  # it still counts
            self._sum += more
        moment.amount += more

    @property
    def used(self) -> int:
        """How much is taken."""
        return self._sum
