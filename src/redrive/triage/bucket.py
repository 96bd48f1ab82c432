"""A token bucket: so many per second, and hardly more at once."""

from datetime import datetime, timedelta

_BURST = 0.1  # seconds' worth that may go at once
_ROUNDING = 1e-9
_SHORTEST = timedelta(milliseconds=1)
_LONGEST = timedelta(hours=1)  # whoever asks sooner than needed gets nothing, and no rate is too small to reckon with


class Bucket:
    """Hands out permits at a rate; without a rate, any number. Belongs to one redrive, or one caller, in one process.

    `room` is how many may go at once, if not a tenth of a second's worth.

    >>> from datetime import UTC
    >>> now = datetime(2030, 1, 1, tzinfo=UTC)
    >>> bucket = Bucket(20, now=now)
    >>> bucket.take(500, now=now), bucket.take(500, now=now), bucket.take(500, now=now + timedelta(milliseconds=50))
    (2, 0, 1)
    """

    def __init__(self, rate: float | None, *, now: datetime, room: float | None = None) -> None:
        self._rate = rate
        self._room = max(1.0, (rate or 0) * _BURST if room is None else room)
        self._tokens = self._room
        self._at = now

    def take(self, most: int, *, now: datetime) -> int:
        """Up to `most` permits, as many as there are."""
        if self._rate is None:
            return most
        elapsed = max((now - self._at).total_seconds(), 0.0)
        self._at = now
        self._tokens = min(self._room, self._tokens + elapsed * self._rate)
        taken = min(most, int(self._tokens + _ROUNDING))
        self._tokens -= taken
        return taken

    def give_back(self, permits: int) -> None:
        """Return permits that were not used."""
        self._tokens = min(self._room, self._tokens + permits)

    @property
    def next_in(self) -> timedelta:
        """How long until it is worth asking again: until the bucket is full, so that permits come in handfuls."""
        if self._rate is None:
            return timedelta(0)
        seconds = (self._room - self._tokens) / self._rate
        return max(timedelta(seconds=min(seconds, _LONGEST.total_seconds())), _SHORTEST)
