"""The bus: one event in, every subscriber told."""

import logging
from collections.abc import Callable

from redrive.core.event import Event

Subscriber = Callable[[Event], None]

log = logging.getLogger(__name__)


class Bus:
    """An `EventSink` that fans out to subscribers, in the order they came.

    Emitting never raises: a subscriber that fails is logged once and passed over, and hears the next event
    all the same. Safe from any thread. Subscribers run in the emitter's thread, so they must not block.
    """

    def __init__(self, *subscribers: Subscriber) -> None:
        self._subscribers = subscribers
        self._failed: set[Subscriber] = set()

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Tell `subscriber` of every event from now on; return the function that ends it. Idempotent."""
        if subscriber not in self._subscribers:
            self._subscribers = (*self._subscribers, subscriber)
        return lambda: self.unsubscribe(subscriber)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Tell it nothing more. Idempotent."""
        self._subscribers = tuple(one for one in self._subscribers if one != subscriber)

    def emit(self, event: Event) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except Exception:  # whatever an observer does, the work goes on
                if subscriber not in self._failed:
                    self._failed.add(subscriber)
                    log.exception("a subscriber failed on %s; said once", type(event).__name__)
