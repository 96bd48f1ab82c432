"""Stats and incidents, read from the tallies."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, Row, String, and_, func, or_, select, type_coerce, update

from redrive.core.audit import Act
from redrive.core.errors import LetterNotFound
from redrive.core.ports.store import IncidentChange, IncidentRow, Page, Stats
from redrive.stores.cursor import mark, mark_of, page_of
from redrive.stores.sql import auditing
from redrive.stores.sql.tables import arrivals, incident, incident_hour, incident_queue, letter, tally_state
from redrive.stores.sql.types import Number, instant

Hours = Sequence[tuple[datetime, Mapping[str, int]]]


def stats(connection: Connection, queue: str | None) -> Stats:
    """Exact counts."""
    by: dict[str, Counter[str]] = {name: Counter() for name in ("queue", "state", "error_type", "reason")}
    statement = select(tally_state).where(tally_state.c.n > 0)
    if queue is not None:
        statement = statement.where(tally_state.c.queue == queue)
    for row in connection.execute(statement).mappings():
        for name, counted in by.items():
            counted[row[name]] += row["n"]
    oldest_at, newest_at = _ends(connection, [*by["queue"]])
    return Stats(
        total=by["state"].total(),
        by_state=by["state"],
        by_error_type=by["error_type"],
        by_reason=by["reason"],
        by_queue=by["queue"],
        oldest_at=oldest_at,
        newest_at=newest_at,
    )


def _ends(connection: Connection, queues: Sequence[str]) -> tuple[datetime | None, datetime | None]:
    """The first and the last failure. Asked apart, and queue by queue: each is one look into an index."""
    first, last = func.min(letter.c.failed_at), func.max(letter.c.failed_at)
    ends: list[list[datetime]] = [[], []]
    for queue in queues:
        here = letter.c.queue == queue
        row = connection.execute(
            select(select(first).where(here).scalar_subquery(), select(last).where(here).scalar_subquery())
        ).one()
        for found, end in zip(ends, row, strict=True):
            found.append(end)
    return min(ends[0], default=None), max(ends[1], default=None)


def arrived(connection: Connection, *, since: datetime, queue: str | None) -> Hours:
    """Deaths per hour, by reason."""
    where = [arrivals.c.hour >= since, *([] if queue is None else [arrivals.c.queue == queue])]
    # Thousands of rows, but few hours and reasons: those are read raw, and understood once each.
    raw_hour, raw_reason = type_coerce(arrivals.c.hour, Number), type_coerce(arrivals.c.reason, String)
    grouped = (arrivals.c.hour, arrivals.c.reason)
    statement = select(raw_hour, raw_reason, func.sum(arrivals.c.n)).where(*where).group_by(*grouped)
    hours: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for hour, reason, number in connection.execute(statement):
        hours[hour][reason] = number
    return [(instant(hour), hours[hour]) for hour in sorted(hours)]


def incidents(connection: Connection, *, state: str | None, limit: int, after: str | None) -> Page[IncidentRow]:
    """Incidents, the latest first."""
    behind = mark_of(after)
    order = (incident.c.last_at.desc(), incident.c.fingerprint.desc())
    statement = select(incident).order_by(*order).limit(limit + 1)
    if state is not None:
        statement = statement.where(incident.c.state == state)
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


def change_incident(connection: Connection, incident_id: str, change: IncidentChange, *, act: Act) -> IncidentRow:
    """Note, assign, mute or resolve."""
    one_incident(connection, incident_id)
    if change.given():
        connection.execute(update(incident).where(incident.c.fingerprint == incident_id).values(change.given()))
    told = {"incident": incident_id, **change.given()}
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
    )
