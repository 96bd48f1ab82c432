"""Counts that are kept: written in the transaction that makes them true, keys in order so that no writers deadlock."""

from collections import Counter
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table, and_, bindparam, case, func, select, update

from redrive.stores.ledger import IncidentDelta, Ledger
from redrive.stores.sql.among import among_given
from redrive.stores.sql.bulk import fetch_rows, run_rows
from redrive.stores.sql.chunks import chunks
from redrive.stores.sql.tables import counter, incident, incident_hour, incident_queue, tally_death, tally_state
from redrive.stores.sql.types import Number
from redrive.stores.sql.upsert import Insert, insert


def write(connection: Connection, ledger: Ledger) -> None:
    """Add the deltas."""
    add(connection, tally_state, [(*key, number) for key, number in ledger.states.items() if number])
    add(connection, tally_death, [(*key, number) for key, number in _by_dimension(ledger).items()])
    touched = sorted(ledger.incidents.items())
    known = [(name, delta) for name, delta in touched if delta.latest is None and (delta.open or delta.total)]
    run_rows(connection, _MOVE, _MOVED, [(name, delta.open, delta.total) for name, delta in known])
    told = [(name, delta) for name, delta in touched if delta.latest is not None]
    run_rows(connection, _TELL, _names(incident), [_told(name, delta) for name, delta in told])
    add(connection, incident_hour, [(name, *one) for name, delta in told for one in delta.hours.items()])
    queues = sorted((name, queue) for name, delta in told for queue in delta.queues)
    run_rows(connection, _PLACE, _names(incident_queue), queues)


def opened(connection: Connection, ledger: Ledger) -> int:
    """How many incidents the deltas will open, for the first time or again. Asked before they are written."""
    more = [name for name, delta in ledger.incidents.items() if delta.open > 0]
    going_on = 0
    for some in chunks(more):
        ((number,),) = fetch_rows(connection, _GOING_ON, fingerprints=some)
        going_on += number
    return len(more) - going_on


def next_numbers(connection: Connection, name: str, count: int) -> int:
    """Reserve `count` numbers; the first of them. Others that count wait for our commit, so numbers follow commits."""
    ((last,),) = fetch_rows(connection, _COUNT, counted=name, more=count)
    return int(last) - count + 1


def _by_dimension(ledger: Ledger) -> Counter[tuple[str, datetime, str, str]]:
    counts: Counter[tuple[str, datetime, str, str]] = Counter()
    for (hour, queue, reason, error_type, error_code), number in ledger.deaths.items():
        counts["reason", hour, reason, queue] += number
        counts["error_type", hour, error_type, queue] += number
        counts["error_code", hour, error_code, queue] += number
    return counts


def add(connection: Connection, tally: Table, rows: list[tuple[Any, ...]]) -> None:
    """Add to rows of a tally, each with its key and how many more there are."""
    run_rows(connection, _adding(tally), _names(tally), sorted(rows))


@cache
def _adding(tally: Table) -> Insert:
    statement = insert(tally)
    return statement.on_conflict_do_update(
        index_elements=list(tally.primary_key), set_={"n": tally.c.n + statement.excluded.n}
    )


@cache
def _names(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns)


_count = insert(counter).values(name=bindparam("counted"), last=bindparam("more"))
_COUNT = _count.on_conflict_do_update(
    index_elements=[counter.c.name], set_={"last": counter.c.last + _count.excluded.last}
).returning(counter.c.last)
_GOING_ON = select(func.count()).where(
    among_given(incident.c.fingerprint, "fingerprints"), incident.c.state != "resolved"
)
_MOVED = ("name", "more", "in_all")
_more = bindparam("more", type_=Number)
_opened = incident.c.open + _more
_MOVE = (
    update(incident)
    .where(incident.c.fingerprint == bindparam("name"))
    .values(
        open=_opened,
        total=incident.c.total + bindparam("in_all"),
        state=case(
            (and_(incident.c.state == "resolved", _more > 0), "open"),
            (and_(incident.c.state == "open", _opened == 0), "resolved"),
            else_=incident.c.state,
        ),
        relapses=case(
            (and_(incident.c.state == "resolved", _more > 0), incident.c.relapses + 1),
            else_=incident.c.relapses,
        ),
    )
)

_PLACE = insert(incident_queue).on_conflict_do_nothing()

_tell = insert(incident)
_told_open = incident.c.open + _tell.excluded.open
_is_later = _tell.excluded.last_at >= incident.c.last_at
_TELL = _tell.on_conflict_do_update(
    index_elements=[incident.c.fingerprint],
    set_={
        "open": _told_open,
        "total": incident.c.total + _tell.excluded.total,
        "first_at": case(
            (_tell.excluded.first_at < incident.c.first_at, _tell.excluded.first_at), else_=incident.c.first_at
        ),
        "last_at": case((_is_later, _tell.excluded.last_at), else_=incident.c.last_at),
        "error_type": case((_is_later, _tell.excluded.error_type), else_=incident.c.error_type),
        "error_message": case((_is_later, _tell.excluded.error_message), else_=incident.c.error_message),
        "state": case(
            (and_(incident.c.state == "resolved", _tell.excluded.open > 0), "open"),
            (and_(incident.c.state == "open", _told_open == 0), "resolved"),
            else_=incident.c.state,
        ),
        "relapses": case(
            (and_(incident.c.state == "resolved", _tell.excluded.open > 0), incident.c.relapses + 1),
            else_=incident.c.relapses,
        ),
    },
)


def _told(name: str, delta: IncidentDelta) -> tuple[Any, ...]:
    """A row of `incident`, should it be new."""
    latest = delta.latest
    assert latest is not None  # noqa: S101 - the caller chose those that have one
    state = "open" if delta.open > 0 else "resolved"
    counts = (delta.open, delta.total, delta.first_at, latest.failed_at)
    return (name, state, latest.error_type, latest.error_message, *counts, "", "", 0, None)
