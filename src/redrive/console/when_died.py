"""When letters died: deaths per hour of the last day, as far as the store has counted just these."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from redrive.console.charts import Bar
from redrive.console.choice import address_of
from redrive.core.stored import Dimension
from redrive.door.filters import LetterFilter
from redrive.triage import analytics
from redrive.triage.desk import Desk

HOURS = 24
_HOUR = timedelta(hours=1)
_ALL_NAMES = 1_000_000


class Deaths(NamedTuple):
    """Bars, oldest first, and how many there are in all."""

    bars: list[Bar]
    total: int


async def deaths_of(desk: Desk, chosen: LetterFilter, *, link: Callable[[Mapping[str, str]], str]) -> Deaths | None:
    """The deaths that a filter is about, whatever became of the letters; None if the store has no count of just these.

    `link` makes the address of an hour from its `from` and `to`.
    """
    dimension = _dimension(chosen)
    if dimension is None:
        return None
    by, name = dimension
    hour = desk.clock.now().astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    first = hour - (HOURS - 1) * _HOUR
    trend = await analytics.trend(
        desk, by, since=first, until=hour + _HOUR, queue=chosen.queue, top=_ALL_NAMES if name else 0
    )
    counts = {found.at: found.counts.get(name, 0) if name else found.total for found in trend.hours}
    bars = [Bar(at, counts.get(at, 0), link(_within(at))) for at in (first + step * _HOUR for step in range(HOURS))]
    return Deaths(bars, sum(bar.value for bar in bars))


def _dimension(chosen: LetterFilter) -> tuple[Dimension, str | None] | None:
    """By what deaths are counted that a filter is about, and which of them it means; None if there is no such count."""
    match sorted({*address_of(chosen)} - {"state", "queue"}):
        case []:
            return "queue", None
        case ["error_type"]:
            return "error_type", chosen.error_type
        case ["error_code"]:
            return "error_code", chosen.error_code
        case ["reason"]:
            return "reason", chosen.reason
        case _:
            return None


def _within(at: datetime) -> dict[str, str]:
    return {"from": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "to": (at + _HOUR).strftime("%Y-%m-%dT%H:%M:%SZ")}
