"""Incidents: letters that failed the same way, looked at and looked after together."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from redrive.core.duration import Duration, as_duration
from redrive.core.errors import ConfigError
from redrive.core.letter import DeadLetter
from redrive.core.likeness import Likeness, in_common
from redrive.core.query import Query
from redrive.core.stored import IncidentChange, IncidentRow, LetterRow, Page
from redrive.triage.desk import Desk
from redrive.triage.letters import read
from redrive.triage.selection import row_of

NOTE, NAME = 4000, 200  # characters of a note and of an assignee, at most
HOURS = 24
LOOKED_AT = 50  # letters that are read whole to see what they have in common


class Shown(NamedTuple):
    """An incident, its latest letters, and what these have in common."""

    incident: IncidentRow
    latest: Sequence[LetterRow]
    alike: Sequence[Likeness]
    sample: DeadLetter | None


async def find(
    desk: Desk,
    *,
    state: str | None = "open",
    limit: int = 50,
    after: str | None = None,
    since: datetime | None = None,
) -> Page[IncidentRow]:
    """A page of incidents, the latest first; only those that began since then, if that is given."""
    return await desk.store.incidents(state=state, limit=limit, after=after, since=since)


async def show(desk: Desk, incident_id: str) -> Shown:
    """One incident, with what its latest letters have in common. Raises `LetterNotFound`."""
    incident = await desk.store.incident(incident_id)
    ours = Query(fingerprint=incident.fingerprint)
    page = await read(desk, ours, limit=LOOKED_AT)
    latest: Sequence[LetterRow] = [*map(row_of, page.rows)]
    if page.after is not None and len(latest) < LOOKED_AT:  # large ones: only a few of them were read
        latest = (await desk.store.find(ours, limit=LOOKED_AT)).rows
    letters = [stored.letter for stored in page.rows]
    return Shown(incident, latest, in_common(letters), letters[0] if letters else None)


async def look(desk: Desk, incident_id: str) -> IncidentRow:
    """One incident with its hours, without its letters. Raises `LetterNotFound`."""
    return await desk.store.incident(incident_id)


async def last_day(desk: Desk, rows: Sequence[IncidentRow]) -> Mapping[str, Sequence[int]]:
    """Deaths in each of the last 24 hours, the present one last, for every incident of a page, in one question."""
    this_hour = desk.clock.now().replace(minute=0, second=0, microsecond=0)
    hours = [this_hour - timedelta(hours=back) for back in reversed(range(HOURS))]
    found = await desk.store.incident_hours([row.incident_id for row in rows], since=hours[0])
    counts = {name: dict(told) for name, told in found.items()}
    return {row.incident_id: [counts.get(row.incident_id, {}).get(at, 0) for at in hours] for row in rows}


async def query_of(desk: Desk, incident_id: str) -> Query:
    """The query for the letters of an incident. Raises `LetterNotFound`."""
    return Query(fingerprint=(await desk.store.incident(incident_id)).fingerprint)


async def note(desk: Desk, incident_id: str, text: str) -> IncidentRow:
    """Put a note on an incident. Raises `LetterNotFound`."""
    return await _change(desk, incident_id, "note", IncidentChange(note=text))


async def assign(desk: Desk, incident_id: str, assignee: str) -> IncidentRow:
    """Say who looks after it; nobody for an empty name. Raises `LetterNotFound`."""
    return await _change(desk, incident_id, "assign", IncidentChange(assignee=assignee))


async def mute(desk: Desk, incident_id: str, *, ends_in: Duration | None = None) -> IncidentRow:
    """Keep counting, but say no more about it: until somebody takes it back, or so long.

    Raises `LetterNotFound`, or `ConfigError` for a time that is none.
    """
    until = None if ends_in is None else desk.clock.now() + _length(ends_in)
    return await _change(desk, incident_id, "mute", IncidentChange(state="muted", muted_until=until))


async def resolve(desk: Desk, incident_id: str) -> IncidentRow:
    """Close it; a new letter opens it again. Its letters stay as they are. Raises `LetterNotFound`."""
    return await _change(desk, incident_id, "resolve", IncidentChange(state="resolved"))


async def reopen(desk: Desk, incident_id: str) -> IncidentRow:
    """Take back `mute` or `resolve`. Raises `LetterNotFound`."""
    return await _change(desk, incident_id, "reopen", IncidentChange(state="open"))


async def _change(desk: Desk, incident_id: str, verb: str, change: IncidentChange) -> IncidentRow:
    act = desk.act(f"incidents.{verb}", selection=f"incident={incident_id}")
    return await desk.store.change_incident(incident_id, change, act=act)


def _length(ends_in: Duration) -> timedelta:
    try:
        found = as_duration(ends_in)
    except ValueError as error:
        raise ConfigError(f"ends_in: {error}") from error
    if not found:
        raise ConfigError("ends_in: expected more than zero")
    return found
