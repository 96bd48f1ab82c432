"""The retry allowance: how many retries a scope may make, so that retries never become the load."""

from datetime import datetime, timedelta
from math import exp
from typing import Final

SHARE: Final = 0.2
LEAST: Final = 10
MINUTE: Final = timedelta(seconds=60)
MOMENT: Final = timedelta(seconds=1)
NEARLY: Final = 1e-6  # of a retry: more than comes back in a microsecond, so that when to ask again is never now


class Allowance:
    """Ten retries a minute, and one for every five answers of about the last minute: what they have earned fades."""

    def __init__(self) -> None:
        self._left = float(LEAST)
        self._at: datetime | None = None

    def succeeded(self, now: datetime) -> None:
        """An answer has come."""
        if self._at is None or now - self._at >= MOMENT:
            self._pass(now)
        self._left += SHARE

    def take(self, now: datetime) -> datetime | None:
        """None if a retry may be made now, and is counted; else when to ask again."""
        self._pass(now)
        if self._left >= 1 - NEARLY:
            self._left -= 1
            return None
        return now + MINUTE * ((1 - self._left) / LEAST)

    def refill(self) -> None:
        """The provider is back: begin again with what everybody begins with."""
        self._left = max(self._left, float(LEAST))

    def _pass(self, now: datetime) -> None:
        """Time has passed: what everybody has comes back, what is beyond it fades."""
        if self._at is not None:
            minutes = (now - self._at) / MINUTE
            if self._left < LEAST:
                self._left = min(self._left + LEAST * minutes, float(LEAST))
            else:
                self._left = LEAST + (self._left - LEAST) * exp(-minutes)
        self._at = now
