"""A notifier as it is treated: told what is news to it, and left alone for a while after a failure."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Final

from redrive.core.alert import Alert
from redrive.core.backoff import Exponential, Jitter, draw_delay
from redrive.core.event import AlertsTold, NotifierFailed
from redrive.core.policy import RetryPolicy
from redrive.core.ports import EventSink, Notifier
from redrive.observe.alert_memo import Told

RETRY: Final = RetryPolicy(backoff=Exponential(initial=5, multiplier=2, cap=60), jitter=Jitter.EQUAL, told_cap="1h")
"""How long a notifier is left alone after each failure; given up it is never, as long as there is something to tell."""
PATIENCE: Final = timedelta(seconds=30)
"""How long one may take to hear everything that is news."""


class Listener:
    """One notifier. What it was told of is handed in, and changed as it hears more."""

    def __init__(self, notifier: Notifier, *, sink: EventSink, random: Random) -> None:
        self.notifier = notifier
        self.not_before: datetime | None = None
        self._sink = sink
        self._random = random
        self._failures = 0

    async def tell(
        self, told: dict[str, Told], firing: Mapping[str, Alert], ended: Mapping[str, Alert], now: datetime
    ) -> None:
        """Tell it what is news: first what has ended, then what fires. Never raises; what was not taken stays news."""
        if self.is_left_alone(now):
            return
        begun = [alert for alert in firing.values() if self._is_news(told.get(alert.key), alert, now)]
        over = [replace(alert, began_at=told[key].alert.began_at) for key, alert in ended.items() if key in told]
        news = [*over, *_renamed(told, begun, now), *begun]
        heard = 0
        try:
            async with asyncio.timeout(PATIENCE.total_seconds()):
                for start in range(0, len(news), self.notifier.at_once):
                    some = news[start : start + self.notifier.at_once]
                    await self.notifier.tell(some)
                    heard += len(some)
                    _note(told, some, now)
        except Exception as error:  # noqa: BLE001 - told again later
            self.failed(len(news) - heard, error, now)
        else:
            self.not_before, self._failures = None, 0
        if heard:
            name, gone = self.notifier.name, sum(alert.ended_at is not None for alert in news[:heard])
            self._sink.emit(AlertsTold(at=now, queue="", notifier=name, firing=heard - gone, resolved=gone))

    def failed(self, alerts: int, error: Exception, now: datetime) -> None:
        """Leave it alone for as long as the policy says, or it does."""
        if self.is_left_alone(now):
            return
        self._failures += 1
        asked = RETRY.classify(error, now=now).told
        wish = None if asked is None else min(asked, RETRY.told_cap)
        self.not_before = now + draw_delay(
            RETRY.backoff, RETRY.jitter, n=self._failures, random=self._random, told=wish
        )
        why = f"{type(error).__name__}: {error}"
        self._sink.emit(NotifierFailed(at=now, queue="", notifier=self.notifier.name, alerts=alerts, why=why))

    def is_left_alone(self, now: datetime) -> bool:
        """Whether it is too early to tell it anything."""
        return self.not_before is not None and now < self.not_before

    def _is_news(self, known: Told | None, alert: Alert, now: datetime) -> bool:
        if known is None or (known.alert.spell, known.alert.queue) != (alert.spell, alert.queue):
            return True
        repeat_every = self.notifier.repeat_every
        return repeat_every is not None and now - known.at >= repeat_every


def _note(told: dict[str, Told], heard: Sequence[Alert], now: datetime) -> None:
    for alert in heard:
        if alert.ended_at is not None:
            told.pop(alert.key, None)
        else:
            told[alert.key] = Told(alert, now)


def _renamed(told: Mapping[str, Told], begun: Sequence[Alert], now: datetime) -> list[Alert]:
    """What was told under the name of one queue, and goes on under another."""
    known = [(told[alert.key].alert, alert) for alert in begun if alert.key in told]
    return [replace(old, ended_at=now) for old, alert in known if old.queue != alert.queue]
