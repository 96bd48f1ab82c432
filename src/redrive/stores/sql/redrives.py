"""The record of redrives."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, exists, insert, or_, select, update

from redrive.core.audit import Act
from redrive.core.errors import LetterNotFound
from redrive.core.redrive import Planned, Progress, Redrive, RedriveState, Target
from redrive.core.stored import Claimed, Page
from redrive.stores.cursor import number_of, page_of
from redrive.stores.marking import marked
from redrive.stores.sql import auditing, claiming, items, tallies
from redrive.stores.sql.bulk import fetch_rows
from redrive.stores.sql.tables import redrive

_NAMES = [field.name for field in fields(Redrive)]
_ONE = select(redrive).where(redrive.c.redrive_id == bindparam("redrive_id"))


def plan(connection: Connection, redrive_id: str, chosen: Sequence[Planned]) -> None:
    """Write a part of a selection, before its redrive is there to be seen."""
    if not _is_there(connection, redrive_id):
        items.plan(connection, redrive_id, chosen)


def create(
    connection: Connection, planned: Redrive, *, count: int, act: Act, owner: str, until: datetime | None
) -> None:
    """Let a redrive begin, its selection written; one that is there already stays as it is."""
    if _is_there(connection, planned.redrive_id):
        return
    values: dict[str, Any] = {name: getattr(planned, name) for name in _NAMES}
    values |= {"state": planned.state.value, "report_within": planned.report_within.total_seconds()}
    values |= {"operation_id": act.operation_id, "owner": owner, "owned_until": until}
    values["seq"] = tallies.next_numbers(connection, "redrive", 1)
    connection.execute(insert(redrive).values(values))
    items.count_planned(connection, planned.redrive_id)
    auditing.record(connection, act, (), count=count)


def one(connection: Connection, redrive_id: str) -> Redrive:
    """One redrive. Raises `LetterNotFound`."""
    return _to_redrive(_row(connection, redrive_id))


def latest(connection: Connection, *, limit: int, after: str | None) -> Page[Redrive]:
    """Redrives, the latest first."""
    below = number_of(after)
    statement = select(redrive).order_by(redrive.c.seq.desc()).limit(limit + 1)
    if below is not None:
        statement = statement.where(redrive.c.seq < below)
    page = page_of(connection.execute(statement).mappings().all(), limit=limit, after=lambda row: str(row["seq"]))
    return Page([_to_redrive(row) for row in page.rows], page.after)


def unfinished(connection: Connection) -> list[Redrive]:
    """Redrives that are running, oldest first."""
    statement = select(redrive).where(redrive.c.state == RedriveState.RUNNING.value).order_by(redrive.c.seq)
    return [_to_redrive(row) for row in connection.execute(statement).mappings()]


def claim(connection: Connection, redrive_id: str, *, step: int, limit: int, now: datetime) -> list[Claimed]:
    """Claim letters of a step."""
    row = _row(connection, redrive_id)
    operation_id = row["operation_id"]
    return claiming.claim(connection, _to_redrive(row), step=step, limit=limit, operation_id=operation_id, now=now)


def take(connection: Connection, redrive_id: str, *, owner: str, now: datetime, until: datetime) -> bool:
    """Be the one redriver until then."""
    _row(connection, redrive_id)
    free = or_(redrive.c.owner == owner, redrive.c.owned_until.is_(None), redrive.c.owned_until <= now)
    statement = update(redrive).where(redrive.c.redrive_id == redrive_id, free).values(owner=owner, owned_until=until)
    return connection.execute(statement).rowcount == 1


def sent(connection: Connection, redrive_id: str, messages: Mapping[str, str], *, at: datetime) -> None:
    """Record what was published."""
    _row(connection, redrive_id)
    items.sent(connection, redrive_id, messages, at=at)


def progress(connection: Connection, redrive_id: str) -> Progress:
    """Items by status and step."""
    return items.progress(connection, redrive_id, steps=len(one(connection, redrive_id).steps) + 1)


def expire_some(connection: Connection, redrive_id: str, *, before: datetime, quiet: bool) -> int:
    """Give up waiting for those sent before then, at most a thousand."""
    _row(connection, redrive_id)
    return items.expire_some(connection, redrive_id, before=before, quiet=quiet)


def leave_some(connection: Connection, redrive_id: str) -> int:
    """Leave what was not heard of, at most a thousand."""
    return items.leave_some(connection, redrive_id)


def mark(
    connection: Connection, redrive_id: str, state: RedriveState, *, why: str, act: Act, accepted: int | None
) -> Redrive:
    """Pause, resume, stop, cancel or end; what is left over at the end is not touched here."""
    before = one(connection, redrive_id)
    after = marked(before, state, why=why, at=act.at, accepted=accepted)
    values = {"state": after.state.value, "why": after.why, "ended_at": after.ended_at, "accepted": after.accepted}
    connection.execute(update(redrive).where(redrive.c.redrive_id == redrive_id).values(values))
    if after.state is not before.state:
        told = {"redrive": redrive_id, "state": [before.state.value, state.value], "why": why}
        auditing.record(connection, replace(act, detail=act.detail | told), (), count=before.total)
    return after


def _is_there(connection: Connection, redrive_id: str) -> bool:
    return bool(connection.execute(select(exists().where(redrive.c.redrive_id == redrive_id))).scalar())


def _row(connection: Connection, redrive_id: str) -> Mapping[str, Any]:
    found = fetch_rows(connection, _ONE, redrive_id=redrive_id)
    if not found:
        raise LetterNotFound(f"no redrive {redrive_id!r} is in the store")
    return dict(zip(redrive.c.keys(), found[0], strict=True))


def _to_redrive(row: Mapping[str, Any] | RowMapping) -> Redrive:
    values: dict[str, Any] = {name: row[name] for name in _NAMES}
    return Redrive(
        **values
        | {
            "state": RedriveState(row["state"]),
            "steps": tuple(row["steps"] or ()),
            "report_within": timedelta(seconds=row["report_within"]),
            "targets": tuple(Target(*target) for target in row["targets"] or ()),
            "failed_on": tuple(row["failed_on"] or ()),
        }
    )
