"""Analytics: how many messages died in each hour, by what they died of and where."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from redrive.core.errors import ConfigError
from redrive.core.stored import Dimension
from redrive.triage.desk import Desk

USUAL = timedelta(days=1)
LONGEST = timedelta(days=31)
TOP = 20


@dataclass(frozen=True, slots=True)
class Hour:
    """The deaths of one hour: of the names that are shown, and of all others together."""

    at: datetime
    total: int
    counts: Mapping[str, int]
    others: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Deaths over a time, by one dimension. The names with the most deaths have their own counts, the rest `others`.

    A relapse is a death too. Hours without any are left out.
    """

    by: Dimension
    since: datetime
    until: datetime
    total: int
    totals: Mapping[str, int]
    others: int
    hours: Sequence[Hour]


async def trend(
    desk: Desk,
    by: Dimension,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    queue: str | None = None,
    top: int = TOP,
) -> Trend:
    """Deaths per hour, exactly, each once; of the last day unless told. The hour in which it begins is counted whole.

    Raises `ConfigError` for a time that ends before it begins, or is longer than can be answered at once.
    """
    until = until or desk.clock.now()
    since = since or until - USUAL
    if not since < until:
        raise ConfigError(f"since: expected an instant before {until.isoformat()}, got {since.isoformat()}")
    if until - since > LONGEST:
        raise ConfigError(f"since: expected at most {LONGEST.days} days before `until`, got {since.isoformat()}")
    since = since.replace(minute=0, second=0, microsecond=0)
    hours = await desk.store.trends(since=since, until=until, queue=queue, by=by)
    totals = Counter[str]()
    for _, counts in hours:
        totals.update(counts)
    shown = dict(totals.most_common(top))
    return Trend(
        by=by,
        since=since,
        until=until,
        total=totals.total(),
        totals=shown,
        others=totals.total() - sum(shown.values()),
        hours=[_hour(at, counts, shown) for at, counts in hours],
    )


def _hour(at: datetime, counts: Mapping[str, int], shown: Mapping[str, int]) -> Hour:
    kept = {name: counts[name] for name in shown if counts.get(name)}
    total = sum(counts.values())
    return Hour(at, total, kept, total - sum(kept.values()))
