"""How long a search goes on looking."""

import time


class Patience:
    """So many seconds, from now on. A search asks behind each of its windows, which are ever larger."""

    def __init__(self, seconds: float) -> None:
        self._last = time.monotonic()
        self._until = self._last + seconds

    def is_over(self) -> bool:
        """Whether what took as long as the last window did would end too late."""
        now = time.monotonic()
        took, self._last = now - self._last, now
        return now + took > self._until
