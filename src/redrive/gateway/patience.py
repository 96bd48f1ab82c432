"""Waits that are all equally long: the oldest ends first, so that one alarm is enough for all of them."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from redrive.gateway.alarms import Alarms

if TYPE_CHECKING:
    from redrive.gateway.alarms import Alarm

T = TypeVar("T")


class Patience(Generic[T]):
    """Tells of each thing that took longer than `length`, once; `over` is called as an alarm is. On one event loop.

    Nearly all of them end before: so to begin and to end costs next to nothing, and a ring may find nothing to do.
    """

    def __init__(self, length: timedelta, over: Callable[[T], None], *, alarms: Alarms) -> None:
        self._length = length
        self._over = over
        self._alarms = alarms
        self._begun: dict[T, datetime] = {}  # the oldest first
        self._alarm: Alarm | None = None

    def begin(self, thing: T, *, now: datetime) -> None:
        """Its time begins, no earlier than that of all the others."""
        self._begun[thing] = now
        if self._alarm is None:
            self._alarm = self._alarms.at(now + self._length, self._look)

    def end(self, thing: T) -> None:
        """It has ended. Idempotent; also for one that never began here."""
        self._begun.pop(thing, None)

    def _look(self) -> None:
        self._alarm = None
        now = self._alarms.now()
        late: list[T] = []
        for thing, began_at in self._begun.items():
            if began_at + self._length > now:
                self._alarm = self._alarms.at(began_at + self._length, self._look)
                break
            late.append(thing)
        for thing in late:
            del self._begun[thing]
            self._alarms.at(now, partial(self._over, thing))
