"""Analytics over HTTP: how many messages died in each hour, by what they died of and where."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from redrive.api.auth import PermittedRoute, allowed
from redrive.core.stored import Dimension
from redrive.door.filters import Instant, Word
from redrive.triage import analytics as verbs
from redrive.triage.desk import Desk
from redrive.triage.masking import masked_counts

router = APIRouter(prefix="/analytics", tags=["analytics"], route_class=PermittedRoute)

MOST_NAMES = 100


class TrendHour(BaseModel):
    """The deaths of one hour."""

    model_config = ConfigDict(from_attributes=True)

    at: datetime
    total: int
    counts: dict[str, int]
    others: int


class Trend(BaseModel):
    """Deaths over a time, by one dimension: the names with the most have their own counts, the rest are `others`."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "example": {
                "by": "error_type",
                "since": "2026-01-30T08:00:00Z",
                "until": "2026-01-31T08:00:00Z",
                "total": 12,
                "totals": {"KeyError": 9, "TimeoutError": 3},
                "others": 0,
                "hours": [
                    {
                        "at": "2026-01-31T07:00:00Z",
                        "total": 12,
                        "counts": {"KeyError": 9, "TimeoutError": 3},
                        "others": 0,
                    }
                ],
            }
        },
    )

    by: Dimension
    since: datetime
    until: datetime
    total: int
    totals: dict[str, int]
    others: int
    hours: list[TrendHour] = Field(description="Oldest first; hours without any are left out.")


@router.get("")
async def trend(
    desk: Annotated[Desk, Depends(allowed("read"))],
    *,
    by: Annotated[Dimension, Query(description="What deaths are counted by.")] = "error_type",
    since: Annotated[Instant | None, Query(description="From that hour on; a day before `until` unless told.")] = None,
    until: Annotated[Instant | None, Query(description="Before then; now unless told.")] = None,
    queue: Annotated[Word | None, Query(description="Only deaths of this queue.")] = None,
    top: Annotated[int, Query(ge=1, le=MOST_NAMES, description="How many names have their own counts.")] = verbs.TOP,
) -> Trend:
    """How many messages died in each hour, exactly, each once; of at most 31 days."""
    found = await verbs.trend(desk, by, since=since, until=until, queue=queue, top=top)
    return Trend.model_validate(_masked(found) if by in _TOLD else found)


_TOLD = ("error_type", "error_code")  # what an error says of itself; the others are names that somebody gave


def _masked(trend: verbs.Trend) -> verbs.Trend:
    if masked_counts(trend.totals) == trend.totals:
        return trend
    hours = [replace(hour, counts=masked_counts(hour.counts)) for hour in trend.hours]
    return replace(trend, totals=masked_counts(trend.totals), hours=hours)
