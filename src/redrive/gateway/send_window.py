"""The send window: requests that are ready at about the same time go out together."""

from datetime import datetime, timedelta


class SendWindow:
    """Opens when `size` requests wait, or the first of them has waited for `wait`; for at most `size` requests."""

    def __init__(self, size: int, wait: timedelta) -> None:
        self._size = size
        self._wait = wait
        self._opens_at: datetime | None = None
        self.left = 0

    def closed_until(self, waiting: int, *, now: datetime) -> datetime | None:
        """None if requests may go, else when the window opens at the latest."""
        if self._size == 1 or self.left > 0:
            return None
        if self._opens_at is None:
            self._opens_at = now + self._wait
        if waiting < self._size and now < self._opens_at:
            return self._opens_at
        self._opens_at = None
        self.left = min(waiting, self._size)
        return None

    def sent(self, requests: int) -> None:
        """So many went out."""
        self.left = max(0, self.left - requests)

    def emptied(self) -> None:
        """Nobody waits: whoever comes next finds a new window."""
        self.left = 0
        self._opens_at = None
