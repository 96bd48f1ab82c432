"""The alert threshold: so many letters in so short a time that somebody should look."""

import threading
from collections import deque
from datetime import datetime, timedelta
from itertools import repeat

from redrive.core.errors import ConfigError
from redrive.core.event import AlertThresholdReached, BatchSettled, Event, LetterWritten
from redrive.core.ports import EventSink

WINDOW = timedelta(hours=1)


class AlertThreshold:
    """An `EventSink` in front of another: passes every event on, and counts the letters of each queue.

    The letter that makes it `threshold` of them within `window` raises `AlertThresholdReached`; then the queue is
    quiet for one window, however many more follow. Time is the events' own. Safe from any thread. Raises `ConfigError`.
    """

    def __init__(self, sink: EventSink, *, threshold: int = 100, window: timedelta = WINDOW) -> None:
        if threshold < 1:
            raise ConfigError(f"alert_threshold: expected a whole number of 1 or more, got {threshold!r}")
        self._sink = sink
        self._threshold = threshold
        self._window = window
        self._queues: dict[str, _Count] = {}
        self._lock = threading.Lock()

    def emit(self, event: Event) -> None:
        self._sink.emit(event)
        letters = len(event.letters) if isinstance(event, BatchSettled) else int(isinstance(event, LetterWritten))
        if letters and self._reached(event, letters):
            self._sink.emit(
                AlertThresholdReached(
                    at=event.at,
                    queue=event.queue,
                    group=event.group,
                    broker=event.broker,
                    letters=self._threshold,
                    window=self._window.total_seconds(),
                )
            )

    def _reached(self, event: Event, letters: int) -> bool:
        with self._lock:
            count = self._queues.get(event.queue)
            if count is None:
                count = self._queues[event.queue] = _Count(self._threshold)
            return count.reached(letters, event.at, within=self._window)


class _Count:
    """The latest letters of one queue, and when they last raised an alert."""

    def __init__(self, threshold: int) -> None:
        self._written_at: deque[datetime] = deque(maxlen=threshold)
        self._raised_at: datetime | None = None

    def reached(self, letters: int, at: datetime, *, within: timedelta) -> bool:
        """Note so many more letters at an instant; whether they raise an alert."""
        self._written_at.extend(repeat(at, letters))
        if len(self._written_at) < (self._written_at.maxlen or 0) or at - self._written_at[0] >= within:
            return False
        if self._raised_at is not None and at - self._raised_at < within:
            return False
        self._raised_at = at
        return True
