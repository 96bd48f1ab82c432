"""Counts that are kept: written in the transaction that makes them true, keys in order so that no writers deadlock."""

from typing import Any

from sqlalchemy import Connection, Table, and_, bindparam, case, update

from redrive.stores.ledger import IncidentDelta, Ledger
from redrive.stores.sql.sqlite import insert
from redrive.stores.sql.tables import arrivals, counter, incident, incident_hour, incident_queue, tally_state


def write(connection: Connection, ledger: Ledger) -> None:
    """Add the deltas."""
    _add(connection, tally_state, [(*key, number) for key, number in ledger.states.items() if number])
    _add(connection, arrivals, [(*key, number) for key, number in ledger.arrivals.items()])
    touched = sorted(ledger.incidents.items())
    known = [_moved(name, delta) for name, delta in touched if delta.latest is None and (delta.open or delta.total)]
    if known:
        connection.execute(_MOVE, known)
    told = [(name, delta) for name, delta in touched if delta.latest is not None]
    if told:
        connection.execute(_TELL, [_told(name, delta) for name, delta in told])
        _add(connection, incident_hour, [(name, *one) for name, delta in told for one in delta.hours.items()])
        queues = sorted((name, queue) for name, delta in told for queue in delta.queues)
        new = insert(incident_queue).on_conflict_do_nothing()
        connection.execute(new, [{"fingerprint": name, "queue": queue} for name, queue in queues])


def next_numbers(connection: Connection, name: str, count: int) -> int:
    """Reserve `count` numbers; the first of them. Others that count wait for our commit, so numbers follow commits."""
    statement = insert(counter).values(name=name, last=count)
    added = statement.on_conflict_do_update(
        index_elements=[counter.c.name], set_={"last": counter.c.last + statement.excluded.last}
    )
    last: int = connection.execute(added.returning(counter.c.last)).scalar_one()
    return last - count + 1


def _add(connection: Connection, tally: Table, rows: list[tuple[Any, ...]]) -> None:
    if not rows:
        return
    names = [column.name for column in tally.columns]
    statement = insert(tally)
    added = statement.on_conflict_do_update(
        index_elements=list(tally.primary_key), set_={"n": tally.c.n + statement.excluded.n}
    )
    connection.execute(added, [dict(zip(names, row, strict=True)) for row in sorted(rows)])


_opened = incident.c.open + bindparam("more")
_MOVE = (
    update(incident)
    .where(incident.c.fingerprint == bindparam("name"))
    .values(
        open=_opened,
        total=incident.c.total + bindparam("in_all"),
        state=case(
            (and_(incident.c.state == "resolved", bindparam("more") > 0), "open"),
            (and_(incident.c.state == "open", _opened == 0), "resolved"),
            else_=incident.c.state,
        ),
    )
)

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
    },
)


def _moved(name: str, delta: IncidentDelta) -> dict[str, Any]:
    return {"name": name, "more": delta.open, "in_all": delta.total}


def _told(name: str, delta: IncidentDelta) -> dict[str, Any]:
    latest = delta.latest
    assert latest is not None  # noqa: S101 - the caller chose those that have one
    return {
        "fingerprint": name,
        "state": "open" if delta.open > 0 else "resolved",
        "error_type": latest.error_type,
        "error_message": latest.error_message,
        "open": delta.open,
        "total": delta.total,
        "first_at": delta.first_at,
        "last_at": latest.failed_at,
        "note": "",
        "assignee": "",
    }
