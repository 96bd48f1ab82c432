"""The overview: what is new, what grows, how much is where, what is on its way back."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from starlette.responses import Response

from redrive.console.charts import Bar
from redrive.console.clip import masked_line
from redrive.console.growth import NEW_FOR, Growth, growth
from redrive.console.pages import queue_acts
from redrive.console.visit import Visit, page
from redrive.core.life import LetterState
from redrive.core.redrive import ENDED, ItemStatus
from redrive.core.stored import IncidentRow
from redrive.triage import analytics, incidents, letters, queues, redrives
from redrive.triage.masking import masked_operation
from redrive.triage.queues import QueueRow

PATIENCE = timedelta(seconds=1)  # with a broker, before the page does without it
INCIDENTS_LOOKED_AT = 50
INCIDENTS = 10
LANES = 60
REDRIVES = 5
REDRIVES_LOOKED_AT = 20
HOURS = 24
_HOUR = timedelta(hours=1)
_ALIVE = (LetterState.OPEN, LetterState.PARKED, LetterState.REDRIVING)


class Trouble(NamedTuple):
    """An incident as the overview shows it."""

    incident: IncidentRow
    growth: Growth
    hours: Sequence[int]


class Lane(NamedTuple):
    """One group's work on one queue, a name for its row, and how many letters of the queue wait for a person."""

    key: str
    row: QueueRow
    open: int


class Way(NamedTuple):
    """A redrive that has not ended: how far it is."""

    shown: redrives.Shown
    ended: int


@page("/", "overview")
async def _overview(visit: Visit) -> Response:
    desk, service = visit.desk, visit.service
    troubles, lanes, arrivals, all_alive, unsettled, ways = await asyncio.gather(
        _troubles(visit),
        queues.overview(service.brokers, service.queues, clock=service.clock, patience=PATIENCE),
        _arrivals(visit),
        letters.stats(desk, states=_ALIVE),
        letters.stats(desk, states=letters.UNSETTLED),
        _ways(visit),
    )
    shown = _lanes(lanes, unsettled.by_queue)
    return visit.render(
        "overview.html",
        troubles=[one._replace(incident=_masked(one.incident)) for one in troubles[:INCIDENTS]],
        more_troubles=len(troubles) > INCIDENTS,
        lanes=shown,
        left_out=sum(bool(row.queue) for row in lanes) - len(shown),
        away=[row for row in lanes if not row.queue],
        several_brokers=len(service.brokers) > 1,
        arrivals=arrivals,
        counts={state.value: all_alive.by_state.get(state, 0) for state in _ALIVE},
        oldest_at=unsettled.oldest_at,
        ways=ways,
    )


async def _troubles(visit: Visit) -> list[Trouble]:
    """The open incidents that are new or changed last: new ones first, then those that grow.

    Within these by when they began, so that rows do not change places all the time. A new one is there also where many
    others have changed since.
    """
    latest, new = await asyncio.gather(
        incidents.find(visit.desk, limit=INCIDENTS_LOOKED_AT),
        incidents.find(visit.desk, limit=INCIDENTS_LOOKED_AT, since=visit.now - NEW_FOR),
    )
    found = [*{row.incident_id: row for row in (*latest.rows, *new.rows)}.values()]
    hours = await incidents.last_day(visit.desk, found)
    troubles = [
        Trouble(row, growth(row, hours[row.incident_id], now=visit.now), hours[row.incident_id]) for row in found
    ]
    troubles.sort(key=lambda one: (one.growth.rank, -one.incident.first_at.timestamp()))
    return troubles


def _masked(incident: IncidentRow) -> IncidentRow:
    return replace(
        incident, error_type=masked_line(incident.error_type), error_message=masked_line(incident.error_message, 300)
    )


def _lanes(rows: Sequence[QueueRow], unsettled: Mapping[str, int]) -> list[Lane]:
    """As many lanes as a page can show, by name; where there are more, those first that need somebody."""
    lanes = [Lane(_key(row), row, unsettled.get(row.queue, 0)) for row in rows if row.queue]
    if len(lanes) <= LANES:
        return lanes
    urgent = sorted(lanes, key=lambda lane: not _needs_somebody(lane))[:LANES]
    kept = {lane.key for lane in urgent}
    return [lane for lane in lanes if lane.key in kept]


def _needs_somebody(lane: Lane) -> bool:
    depth = lane.row.depth
    return bool(lane.open or lane.row.trouble or lane.row.paused or (depth and (depth.held or depth.dead)))


def _key(row: QueueRow) -> str:
    named = f"{row.broker}\n{row.queue}\n{row.group}"
    return sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:12]


async def _arrivals(visit: Visit) -> list[Bar]:
    """How many messages died in each hour of the last day, the present one last."""
    this_hour = visit.now.replace(minute=0, second=0, microsecond=0)
    since = this_hour - (HOURS - 1) * _HOUR
    found = await analytics.trend(visit.desk, "queue", since=since, until=this_hour + _HOUR, top=1)
    totals = {hour.at: hour.total for hour in found.hours}
    hours = [since + number * _HOUR for number in range(HOURS)]
    return [Bar(at, totals.get(at, 0), _letters_of(visit, at)) for at in hours]


def _letters_of(visit: Visit, at: datetime) -> str:
    return visit.url("letters", {"from": _written(at), "to": _written(at + _HOUR)})


def _written(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


async def _ways(visit: Visit) -> list[Way]:
    """The redrives that run, or wait for somebody, the latest first."""
    desk = visit.desk
    latest = (await redrives.find(desk, limit=REDRIVES_LOOKED_AT)).rows
    under_way = [one for one in latest if one.state not in ENDED][:REDRIVES]
    shown = await asyncio.gather(*(redrives.show(desk, one.redrive_id) for one in under_way))
    return [Way(one._replace(redrive=masked_operation(one.redrive, visit.caller)), _ended(one)) for one in shown]


def _ended(shown: redrives.Shown) -> int:
    """How many of its letters nobody has to wait for any more."""
    waiting = [status for status in ItemStatus if status.out or status is ItemStatus.PLANNED]
    return shown.redrive.total - shown.progress.count(*waiting)


routes = [_overview, *queue_acts.routes]
