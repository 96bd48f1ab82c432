"""The rules about queues: how fast letters come, how many there are, and how old."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from redrive.core.alert import Alert, Rule
from redrive.core.alert_rules import AlertRules, Pace, span
from redrive.core.life import LetterState
from redrive.core.ports.store import LetterStore
from redrive.observe.alert_memo import AlertMemo, Sample
from redrive.observe.pages import Pages

_SAMPLES: Final = 10  # in a window
_HOUR: Final = timedelta(hours=1)
_OPEN: Final = (LetterState.OPEN, LetterState.PARKED)


class QueueWatch:
    """Finds the rules that are broken, by what a store counts anyway: no letter is read."""

    def __init__(self, store: LetterStore, rules: AlertRules, *, pages: Pages) -> None:
        self._store = store
        self._rules = rules
        self._pages = pages

    async def broken(self, memo: AlertMemo, now: datetime) -> dict[str, Alert]:
        """An alert for each queue and rule, by its key. Raises `StoreError`.

        A number that was above its limit has to come down to half of it: one that moves about the limit would call
        people all day.
        """
        found: list[Alert] = []
        for rule, pace in ((Rule.GROWTH, self._rules.growth), (Rule.THRESHOLD, self._rules.threshold)):
            if pace is None:
                continue
            deaths = await self._deaths(memo.samples.setdefault(rule, []), pace, now)
            words = f"letters died within {span(pace.window)}, the limit is {pace.letters:,}"
            numbers = [self._of_queue(rule, queue, number, now, words=words) for queue, number in deaths.items()]
            found += _above(pace.letters, numbers, memo)
        if self._rules.size is not None or self._rules.age is not None:
            found += await self._standing(memo, now)
        return {alert.key: alert for alert in found}

    async def _deaths(self, samples: list[Sample], pace: Pace, now: datetime) -> Counter[str]:
        """Letters of each queue that came since the oldest sample that counts, and died at most an hour before it.

        A sample is taken ten times in a window and kept for as long: so the time is right to a tenth of it. Of the time
        in which nobody counted nothing is known: counting begins anew.
        """
        step = pace.window / _SAMPLES
        # A clock that was set back leaves samples of the future, which tell nothing.
        samples[:] = [one for one in samples if now >= one.at >= now - pace.window - step]
        hours = await self._store.trends(since=_before(samples[0].at if samples else now), by="queue")
        if not samples or now - samples[-1].at >= step:
            samples.append(Sample(now, dict(_sum({at: deaths for at, deaths in hours if at >= _before(now)}))))
        deaths = _sum(dict(hours))
        deaths.subtract(samples[0].deaths)
        return deaths

    async def _standing(self, memo: AlertMemo, now: datetime) -> list[Alert]:
        """The rules about letters that are there, whenever they died."""
        found: list[Alert] = []
        everywhere = await self._store.stats(states=_OPEN)
        size, age = self._rules.size, self._rules.age
        if size is not None:
            words = f"letters are open, the limit is {size:,}"
            sizes = everywhere.by_queue.items()
            numbers = [self._of_queue(Rule.SIZE, queue, number, now, words=words) for queue, number in sizes]
            found += _above(size, numbers, memo)
        if age is None or everywhere.oldest_at is None or now - everywhere.oldest_at <= age:
            return found
        words = f"letters are open, and the oldest has been for more than {span(age)}"
        for queue in everywhere.by_queue:
            stats = await self._store.stats(queue, states=_OPEN)
            if stats.oldest_at is not None and now - stats.oldest_at > age:
                found.append(self._of_queue(Rule.AGE, queue, stats.total, now, words=words))
        return found

    def _of_queue(self, rule: Rule, queue: str, number: int, now: datetime, *, words: str) -> Alert:
        said, link = f"{queue}: {number:,} {words}", self._pages.queue(queue)
        return Alert(rule=rule, queues=(queue,), open=number, said=said, began_at=now, last_at=now, link=link)


def _above(limit: int, numbers: list[Alert], memo: AlertMemo) -> list[Alert]:
    return [alert for alert in numbers if alert.open > (limit // 2 if alert.spell in memo.began else limit)]


def _sum(hours: Mapping[datetime, Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for deaths in hours.values():
        total.update(deaths)
    return total


def _before(at: datetime) -> datetime:
    """The hour before that of an instant: some letters are told of late."""
    return at.replace(minute=0, second=0, microsecond=0) - _HOUR
