"""Stats and incidents, read from the tallies."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, Row, String, and_, func, or_, select, type_coerce, update

from redrive.core.audit import Act
from redrive.core.errors import LetterNotFound
from redrive.core.life import LetterState
from redrive.core.stored import Dimension, IncidentChange, IncidentRow, Page, Stats
from redrive.stores.cursor import mark, mark_of, page_of
from redrive.stores.exact import instant, unescaped
from redrive.stores.sql import auditing
from redrive.stores.sql.among import among
from redrive.stores.sql.chunks import chunks
from redrive.stores.sql.tables import incident, incident_hour, incident_queue, letter, tally_death, tally_state
from redrive.stores.sql.types import Number

_PLACES = 100

Hours = Sequence[tuple[datetime, Mapping[str, int]]]


def stats(connection: Connection, queue: str | None, *, states: Sequence[LetterState]) -> Stats:
    """Exact counts."""
    places: set[tuple[str, str]] = set()
    by: dict[str, Counter[str]] = {name: Counter() for name in ("queue", "state", "error_type", "reason")}
    statement = select(tally_state).where(tally_state.c.n > 0)
    if queue is not None:
        statement = statement.where(tally_state.c.queue == queue)
    if states:
        statement = statement.where(tally_state.c.state.in_([state.value for state in states]))
    for row in connection.execute(statement).mappings():
        places.add((row["queue"], row["state"]))
        for name, counted in by.items():
            counted[row[name]] += row["n"]
    oldest_at, newest_at = _ends(connection, sorted(places))
    return Stats(
        total=by["state"].total(),
        by_state=by["state"],
        by_error_type=by["error_type"],
        by_reason=by["reason"],
        by_queue=by["queue"],
        oldest_at=oldest_at,
        newest_at=newest_at,
    )


def _ends(connection: Connection, places: Sequence[tuple[str, str]]) -> tuple[datetime | None, datetime | None]:
    """The first and the last failure at these queues and states. Each is asked for apart: one look into an index."""
    first, last = func.min(letter.c.failed_at), func.max(letter.c.failed_at)
    found: list[datetime] = []
    for some in chunks(places, size=_PLACES):
        here = [(letter.c.queue == queue, letter.c.state == state) for queue, state in some]
        looks = [select(end).where(*where).scalar_subquery() for where in here for end in (first, last)]
        found.extend(end for end in connection.execute(select(*looks)).one() if end is not None)
    return min(found, default=None), max(found, default=None)


def trends(
    connection: Connection, *, since: datetime, until: datetime | None, queue: str | None, by: Dimension
) -> Hours:
    """Deaths per hour, by one dimension."""
    # Every dimension counts every death: that of the queue, which is in each row, needs no rows of its own.
    name, dimension = (tally_death.c.queue, "reason") if by == "queue" else (tally_death.c.name, by)
    where = [tally_death.c.dimension == dimension, tally_death.c.hour >= since]
    if until is not None:
        where.append(tally_death.c.hour < until)
    if queue is not None:
        where.append(tally_death.c.queue == queue)
    # Thousands of rows, but few hours and names: those are read raw, and understood once each.
    raw_hour, raw_name = type_coerce(tally_death.c.hour, Number), type_coerce(name, String)
    statement = select(raw_hour, raw_name, func.sum(tally_death.c.n)).where(*where).group_by(tally_death.c.hour, name)
    hours: defaultdict[int, dict[str, int]] = defaultdict(dict)
    known: dict[str, str] = {}
    for hour, raw, number in connection.execute(statement):
        if raw not in known:
            known[raw] = unescaped(raw)
        hours[hour][known[raw]] = int(number)
    return [(instant(hour), hours[hour]) for hour in sorted(hours)]


def incidents(
    connection: Connection, *, state: str | None, limit: int, after: str | None, since: datetime | None
) -> Page[IncidentRow]:
    """Incidents, the latest first."""
    behind = mark_of(after)
    order = (incident.c.last_at.desc(), incident.c.fingerprint.desc())
    statement = select(incident).order_by(*order).limit(limit + 1)
    if state is not None:
        statement = statement.where(incident.c.state == state)
    if since is not None:  # what began since has not ended before: an index has the end
        statement = statement.where(incident.c.last_at >= since, incident.c.first_at >= since)
    if behind is not None:
        at, name = behind
        same_time = and_(incident.c.last_at == at, incident.c.fingerprint < name)
        statement = statement.where(incident.c.last_at <= at, or_(incident.c.last_at < at, same_time))
    rows = connection.execute(statement).all()
    queues = _queues(connection, [row.fingerprint for row in rows])
    found = [_to_incident(row, queues.get(row.fingerprint, ())) for row in rows]
    return page_of(found, limit=limit, after=lambda row: mark(row.last_at, row.fingerprint))


def one_incident(connection: Connection, incident_id: str) -> IncidentRow:
    """One incident with its hours. Raises `LetterNotFound`."""
    row = connection.execute(select(incident).where(incident.c.fingerprint == incident_id)).one_or_none()
    if row is None:
        raise LetterNotFound(f"no incident {incident_id!r} is in the store")
    statement = select(incident_hour.c.hour, incident_hour.c.n).where(incident_hour.c.fingerprint == incident_id)
    hours = tuple((hour, number) for hour, number in connection.execute(statement.order_by(incident_hour.c.hour)))
    queues = _queues(connection, [incident_id])
    return _to_incident(row, queues.get(incident_id, ()), hours=hours)


def incident_hours(
    connection: Connection, incident_ids: Sequence[str], *, since: datetime
) -> dict[str, list[tuple[datetime, int]]]:
    """The hours of several incidents from then on."""
    found: defaultdict[str, list[tuple[datetime, int]]] = defaultdict(list)
    statement = select(incident_hour).where(
        among(incident_hour.c.fingerprint, incident_ids), incident_hour.c.hour >= since
    )
    for row in connection.execute(statement.order_by(incident_hour.c.hour)):
        found[row.fingerprint].append((row.hour, row.n))
    return dict(found)


def change_incident(connection: Connection, incident_id: str, change: IncidentChange, *, act: Act) -> IncidentRow:
    """Note, assign, mute or resolve."""
    one_incident(connection, incident_id)
    if change.given():
        connection.execute(update(incident).where(incident.c.fingerprint == incident_id).values(change.given()))
    told = {"incident": incident_id, **change.said()}
    auditing.record(connection, replace(act, detail=act.detail | told), ())
    return one_incident(connection, incident_id)


def _queues(connection: Connection, fingerprints: Sequence[str]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    statement = select(incident_queue).where(incident_queue.c.fingerprint.in_(fingerprints))
    for row in connection.execute(statement):
        found[row.fingerprint].append(row.queue)
    return dict(found)


def _to_incident(
    row: Row[tuple[object, ...]], queues: Sequence[str], *, hours: Sequence[tuple[datetime, int]] = ()
) -> IncidentRow:
    return IncidentRow(
        incident_id=row.fingerprint,
        fingerprint=row.fingerprint,
        error_type=row.error_type,
        error_message=row.error_message,
        open=row.open,
        total=row.total,
        first_at=row.first_at,
        last_at=row.last_at,
        queues=tuple(sorted(queues)),
        state=row.state,
        note=row.note,
        assignee=row.assignee,
        hours=hours,
        relapses=row.relapses,
        muted_until=row.muted_until,
    )
