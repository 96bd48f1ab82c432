"""Dead letter queues for tests: one that forgets, one that remembers."""

import threading

from redrive.core.errors import DeadLetterQueueClosed, DeadLetterQueueFull
from redrive.core.letter import DeadLetter
from redrive.core.redrive import RedriveOutcome


class NullDeadLetterQueue:
    """Takes every letter and keeps none. Closed, it refuses them like any other queue."""

    def __init__(self) -> None:
        self._closed = False

    async def send(self, letter: DeadLetter) -> None:  # noqa: ARG002 - the port's signature
        self._refuse_if_closed()

    async def report(self, outcome: RedriveOutcome) -> None:  # noqa: ARG002 - the port's signature
        self._refuse_if_closed()

    async def aclose(self) -> None:
        self._closed = True

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise DeadLetterQueueClosed("this dead letter queue has been closed")


class RecordingDeadLetterQueue:
    """Remembers what it was given, every call by itself. Safe from tasks and threads, and from any event loop.

    With a `capacity`, one letter more raises `DeadLetterQueueFull` until `clear` makes room. Once closed it raises
    `DeadLetterQueueClosed`; what it holds can still be looked at.
    """

    def __init__(self, *, capacity: int | None = None) -> None:
        self._capacity = capacity
        self._letters: list[DeadLetter] = []
        self._reports: list[RedriveOutcome] = []
        self._closed = False
        self._lock = threading.Lock()

    @property
    def events(self) -> tuple[DeadLetter, ...]:
        """The letters, in the order they came."""
        with self._lock:
            return tuple(self._letters)

    @property
    def count(self) -> int:
        """How many letters there are."""
        return len(self.events)

    @property
    def last(self) -> DeadLetter:
        """The latest letter. Raises `LookupError` if there is none."""
        if letters := self.events:
            return letters[-1]
        raise LookupError("no dead letter was sent")

    @property
    def reports(self) -> tuple[RedriveOutcome, ...]:
        """What was reported of redriven messages, in the order it came."""
        with self._lock:
            return tuple(self._reports)

    def clear(self) -> None:
        """Forget all letters and reports."""
        with self._lock:
            self._letters.clear()
            self._reports.clear()

    async def send(self, letter: DeadLetter) -> None:
        with self._lock:
            self._refuse_if_closed()
            if self._capacity is not None and len(self._letters) >= self._capacity:
                raise DeadLetterQueueFull(f"this dead letter queue is full: its capacity is {self._capacity}")
            self._letters.append(letter)

    async def report(self, outcome: RedriveOutcome) -> None:
        with self._lock:
            self._refuse_if_closed()
            self._reports.append(outcome)

    async def aclose(self) -> None:
        with self._lock:
            self._closed = True

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise DeadLetterQueueClosed("this dead letter queue has been closed")
