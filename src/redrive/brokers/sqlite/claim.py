"""Handing out: what a worker may start is noted durably before it hears of it."""

from typing import Any, NamedTuple

from redrive.brokers.sqlite.hold import Holder, take
from redrive.brokers.sqlite.rows import TRACKED, Lane, fresh_deliveries, tracked_delivery
from redrive.brokers.sqlite.schema import SEQ_MASK, row_id
from redrive.brokers.sqlite.transaction import Transaction
from redrive.core.delivery import Delivery

DUE = (
    f"SELECT {TRACKED} FROM tracked WHERE lane = ? AND state = 'due' AND due_at <= ?"  # noqa: S608 - a constant
    " ORDER BY due_at, published_at, id LIMIT ?"
)
FRESH = (
    "SELECT id, published_at, expires_at, key, headers, body FROM fresh WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
)


class Sight(NamedTuple):
    """What there is to fetch in a lane: when two looks differ, it is worth trying."""

    paused: str | None
    waiting: bool
    due_at: int | None

    def ready(self, now: int) -> bool:
        """Whether a fetch would find something."""
        return self.paused is None and (self.waiting or (self.due_at is not None and self.due_at <= now))


def look(lane: Lane, transaction: Transaction) -> Sight:
    """What there is to fetch, in one quick read."""
    paused, backlog, due_at = transaction.execute(
        "SELECT paused, backlog, (SELECT min(due_at) FROM tracked WHERE lane = ?1 AND state = 'due')"
        " FROM lane WHERE id = ?1",
        (lane.id,),
    ).fetchone()
    return Sight(paused, backlog > 0, due_at)


def claim(
    lane: Lane, holder: Holder, limit: int, transaction: Transaction, *, fresh_first: bool = False
) -> list[Delivery]:
    """Up to `limit` messages, put into the hands of this worker by one row of `hold`.

    Which of due and fresh ones come first is the caller's choice; who alternates starves neither.
    """
    paused, cursor, backlog = transaction.execute(
        "SELECT paused, cursor, backlog FROM lane WHERE id = ?", (lane.id,)
    ).fetchone()
    if paused is not None:
        return []
    fresh = _fresh(lane, cursor, min(limit, backlog), transaction) if fresh_first else []
    due = transaction.execute(DUE, (lane.id, transaction.now, limit - len(fresh))).fetchall()
    if not fresh_first:
        fresh = _fresh(lane, cursor, min(limit - len(due), backlog), transaction)
    if not due and not fresh:
        return []
    span = (fresh[0][0], fresh[-1][0]) if fresh else (None, None)
    hold = take(lane, holder, transaction, span=span)
    if fresh:
        transaction.execute(
            "UPDATE lane SET cursor = ?, backlog = backlog - ? WHERE id = ?",
            (fresh[-1][0] & SEQ_MASK, len(fresh), lane.id),
        )
    if due:
        transaction.executemany(
            "UPDATE tracked SET state = 'taken', hold = ? WHERE id = ?", [(hold, row[0]) for row in due]
        )
    return [
        *(tracked_delivery(lane, row, hold=hold, at=transaction.at) for row in due),
        *fresh_deliveries(lane, fresh, hold=hold, at=transaction.at),
    ]


def _fresh(lane: Lane, cursor: int, limit: int, transaction: Transaction) -> list[tuple[Any, ...]]:
    if limit < 1:
        return []
    return transaction.execute(FRESH, (row_id(lane.id, cursor), lane.last, limit)).fetchall()
