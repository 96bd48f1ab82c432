"""The retry allowance: how many retries a scope may make, so that retries never become the load."""

from datetime import datetime, timedelta
from typing import Final

SHARE: Final = 0.2
LEAST: Final = 10
MOST: Final = 1000
MINUTE: Final = timedelta(seconds=60)


class Allowance:
    """Ten retries a minute, and one for every five answers. What is not used is kept up to a bound."""

    def __init__(self) -> None:
        self._left = float(LEAST)
        self._at: datetime | None = None

    def succeeded(self) -> None:
        """An answer has come."""
        self._left = min(self._left + SHARE, float(MOST))

    def take(self, now: datetime) -> datetime | None:
        """None if a retry may be made now, and is counted; else when to ask again."""
        if self._at is not None and self._left < LEAST:
            self._left = min(self._left + LEAST * ((now - self._at) / MINUTE), float(LEAST))
        self._at = now
        if self._left >= 1 - 1e-9:
            self._left -= 1
            return None
        return now + MINUTE * ((1 - self._left) / LEAST)

    def refill(self) -> None:
        """The provider is back: begin again with what everybody begins with."""
        self._left = max(self._left, float(LEAST))
