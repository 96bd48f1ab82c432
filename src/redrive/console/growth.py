"""Whether an incident is new, grows or calms down: what a person wants to know of it first."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from redrive.console.words import span
from redrive.core.stored import IncidentRow

NEW_FOR = timedelta(hours=1)
_HOUR = timedelta(hours=1)


class Growth(NamedTuple):
    """How an incident goes: in one word, and what is to be said beside it. `rank` is lower the sooner to look at it."""

    name: str
    words: str
    rank: int


def growth(incident: IncidentRow, hours: Sequence[int], *, now: datetime) -> Growth:
    """How an incident goes, from its deaths in each of the last hours, of which the present one is the last."""
    if now - incident.first_at < NEW_FOR:
        return Growth("new", f"{incident.total:,} so far", 0)
    last, before = _last_two(hours, now=now)
    if not last:
        return Growth("quiet", f"for {span(now - incident.last_at)}", 2)
    if last > before:
        return Growth("growing", f"about {last:,} an hour, up from {before:,}", 1)
    if last < before:
        return Growth("slowing", f"about {last:,} an hour, down from {before:,}", 2)
    return Growth("steady", f"about {last:,} an hour", 2)


def _last_two(hours: Sequence[int], *, now: datetime) -> tuple[int, int]:
    """Deaths in the last sixty minutes and in the sixty before, as if those of an hour were spread over it evenly.

    The present hour has only begun: compared as it is, every incident would calm down on the hour.
    """
    begun = now.replace(minute=0, second=0, microsecond=0)
    share = (now - begun) / _HOUR
    third, second, first = (0, 0, 0, *hours)[-3:]
    return round(first + second * (1 - share)), round(second * share + third * (1 - share))
