"""The pace: how much to fetch at once: what can start in about 20 ms, and never less than the lanes that are free."""

import time

AHEAD = 0.02


class Pace:
    """Learns how fast a consumer's handlers start."""

    def __init__(self, prefetch: int) -> None:
        self._prefetch = prefetch
        self._rate = 0.0
        self._started = 0
        self._at = time.monotonic()

    def want(self, *, free: int, started: int) -> int:
        """How many deliveries should be buffered, given the free lanes and the count started so far."""
        now = time.monotonic()
        elapsed = now - self._at
        if elapsed > AHEAD / 4:
            rate = (started - self._started) / elapsed
            self._rate = rate if rate > self._rate else (self._rate * 3 + rate) / 4
            self._started, self._at = started, now
        return max(1, min(self._prefetch, max(free, int(self._rate * AHEAD))))
