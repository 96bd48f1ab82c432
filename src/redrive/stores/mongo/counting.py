"""Stats, trends and incidents, read from what is kept."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from redrive.core.audit import Act
from redrive.core.errors import LetterNotFound
from redrive.core.life import LetterState
from redrive.core.stored import Dimension, IncidentChange, IncidentRow, Page, Stats
from redrive.stores.cursor import mark, mark_of, page_of
from redrive.stores.exact import instant, microseconds, unescaped
from redrive.stores.mongo import auditing
from redrive.stores.mongo.draft import Draft
from redrive.stores.mongo.shelves import DEATHS, DOWN, INCIDENTS, LETTERS, TALLIES, UP, Shelves
from redrive.stores.mongo.tallies import put_incident, to_incident
from redrive.stores.mongo.values import texts, to_text

_FAILED_AT = "redrive.failed_at"

Hours = Sequence[tuple[datetime, Mapping[str, int]]]


async def stats(shelves: Shelves, queue: str | None, *, states: Sequence[LetterState]) -> Stats:
    """Exact counts."""
    where: dict[str, Any] = {"n": {"$gt": 0}}
    if queue is not None:
        where["queue"] = to_text(queue)
    if states:
        where["state"] = {"$in": [state.value for state in states]}
    places: set[tuple[str, str]] = set()
    by: dict[str, Counter[str]] = {name: Counter() for name in ("queue", "state", "error_type", "reason")}
    for one in await shelves.many(TALLIES, where):
        places.add((one["queue"], one["state"]))
        for name, counted in by.items():
            counted[unescaped(one[name])] += one["n"]
    ends = [end for place in sorted(places) for end in await _ends(shelves, *place)]
    return Stats(
        total=by["state"].total(),
        by_state=by["state"],
        by_error_type=by["error_type"],
        by_reason=by["reason"],
        by_queue=by["queue"],
        oldest_at=min(ends, default=None),
        newest_at=max(ends, default=None),
    )


async def _ends(shelves: Shelves, queue: str, state: str) -> list[datetime]:
    """The first and the last failure at a queue and state: each is one look into an index."""
    where = {"dlq_metadata.queue": queue, "redrive.state": state}
    fields = {"_id": 0, _FAILED_AT: 1}
    found = [
        one
        for direction in (UP, DOWN)
        for one in await shelves.many(LETTERS, where, fields=fields, order=[(_FAILED_AT, direction)], limit=1)
    ]
    return [instant(one["redrive"]["failed_at"]) for one in found]


async def trends(
    shelves: Shelves, *, since: datetime, until: datetime | None, queue: str | None, by: Dimension
) -> Hours:
    """Deaths per hour, by one dimension."""
    # Every dimension counts every death: that of the queue, which is in each document, needs none of its own.
    name, dimension = ("queue", "reason") if by == "queue" else ("name", by)
    hour = {"$gte": microseconds(since)} | ({} if until is None else {"$lt": microseconds(until)})
    where: dict[str, Any] = {"dimension": dimension, "hour": hour}
    if queue is not None:
        where["queue"] = to_text(queue)
    hours: dict[int, Counter[str]] = {}
    for one in await shelves.many(DEATHS, where):
        hours.setdefault(one["hour"], Counter())[unescaped(one[name])] += one["n"]
    return [(instant(at), hours[at]) for at in sorted(hours)]


async def incidents(
    shelves: Shelves, *, state: str | None, limit: int, after: str | None, since: datetime | None
) -> Page[IncidentRow]:
    """Incidents, the latest first."""
    behind = mark_of(after)
    where: dict[str, Any] = {} if state is None else {"state": state}
    if since is not None:  # what began since has not ended before: an index has the end
        where |= {name: {"$gte": microseconds(since)} for name in ("last_at", "first_at")}
    if behind is not None:
        at, name = microseconds(behind[0]), to_text(behind[1])
        where["$or"] = [{"last_at": {"$lt": at}}, {"last_at": at, "_id": {"$lt": name}}]
    order = [("last_at", DOWN), ("_id", DOWN)]
    found = await shelves.many(INCIDENTS, where, fields={"hours": 0}, order=order, limit=limit + 1)
    return page_of([*map(to_incident, found)], limit=limit, after=lambda row: mark(row.last_at, row.fingerprint))


async def one_incident(shelves: Shelves, incident_id: str) -> IncidentRow:
    """One incident with its hours. Raises `LetterNotFound`."""
    found = await shelves.one(INCIDENTS, {"_id": to_text(incident_id)})
    if found is None:
        raise LetterNotFound(f"no incident {incident_id!r} is in the store")
    return to_incident(found)


async def incident_hours(
    shelves: Shelves, incident_ids: Sequence[str], *, since: datetime
) -> dict[str, list[tuple[datetime, int]]]:
    """The hours of several incidents from then on."""
    rows = map(to_incident, await shelves.among(INCIDENTS, "_id", texts(incident_ids)))
    hours = {row.incident_id: [(at, number) for at, number in row.hours if at >= since] for row in rows}
    return {name: found for name, found in hours.items() if found}


async def change_incident(draft: Draft, incident_id: str, change: IncidentChange, *, act: Act) -> IncidentRow:
    """Note, assign, mute or resolve."""
    before = await one_incident(draft.shelves, incident_id)
    after = replace(before, **change.given())
    put_incident(draft, before, after)
    told = {"incident": incident_id, **change.said()}
    await auditing.record(draft, replace(act, detail=act.detail | told), ())
    return after
