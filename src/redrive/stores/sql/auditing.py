"""The audit: append-only, each record chained to the one before."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, exists, literal_column, select

from redrive.core.audit import Act, AuditRecord, first_broken
from redrive.core.stored import Page
from redrive.stores.cursor import number_of, page_of
from redrive.stores.sql import edits, tallies
from redrive.stores.sql.bulk import fetch_rows, insert_rows
from redrive.stores.sql.tables import audit
from redrive.stores.witness import NAMES, Link, Touched, lines_of

_PAGE = 1000
_OPERATION = audit.c.letter_id == literal_column("''")  # as its index says it, so that the index is used
_KNOWN = select(exists().where(audit.c.operation_id == bindparam("operation_id"), _OPERATION))
_HASH = select(audit.c.hash).where(audit.c.seq == bindparam("number"))


def record(connection: Connection, act: Act, touched: Sequence[Touched], *, count: int | None = None) -> None:
    """Write the audit of an act: its operation once, and each letter."""
    ((known,),) = fetch_rows(connection, _KNOWN, operation_id=act.operation_id)
    total = act.count if act.count is not None else len(touched) if count is None else count
    number = len(touched) + (not known)
    if not number:
        return
    first = tallies.next_numbers(connection, "audit", number)
    last = fetch_rows(connection, _HASH, number=first - 1)
    behind = Link(first - 1, last[0][0] if last else "")
    lines = lines_of(act, touched, behind=behind, count=None if known else total)
    insert_rows(connection, audit, NAMES, lines)


def record_unchanged(connection: Connection, act: Act, letter_ids: Sequence[str]) -> None:
    """Write the audit of an act that changes nothing."""
    hashes = edits.sent_hashes_of(connection, letter_ids)
    named = {name: hashes.get(name, "") for name in letter_ids}
    record(connection, act, [Touched(name, hashed, hashed) for name, hashed in named.items()])


def records(connection: Connection, *, limit: int, after: str | None, letter_id: str | None) -> Page[AuditRecord]:
    """Records, the latest first."""
    below = number_of(after)
    statement = select(audit).order_by(audit.c.seq.desc()).limit(limit + 1)
    if below is not None:
        statement = statement.where(audit.c.seq < below)
    if letter_id is not None:
        statement = statement.where(audit.c.letter_id == letter_id)
    found = [_to_record(row) for row in connection.execute(statement).mappings()]
    return page_of(found, limit=limit, after=lambda one: str(one.seq))


def verify(connection: Connection) -> AuditRecord | None:
    """The first record that does not follow from those before it."""
    return first_broken(_all(connection))


def _all(connection: Connection) -> Iterator[AuditRecord]:
    last = -1
    pages = select(audit).order_by(audit.c.seq).limit(_PAGE)
    while rows := connection.execute(pages.where(audit.c.seq > last)).mappings().all():
        yield from map(_to_record, rows)
        last = rows[-1]["seq"]


def _to_record(row: RowMapping) -> AuditRecord:
    values: dict[str, Any] = {name: row[name] for name in NAMES}
    return AuditRecord(**values | {"detail": row["detail"] or {}})
