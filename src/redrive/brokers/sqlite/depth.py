"""How much of a lane's work is where, in a few quick reads however much there is."""

from redrive.brokers.sqlite.letters import length
from redrive.brokers.sqlite.queues import DLQ
from redrive.brokers.sqlite.rows import Lane
from redrive.brokers.sqlite.schema import row_id
from redrive.brokers.sqlite.transaction import Transaction, as_instant
from redrive.core.ports import Depth


def depth(lane: Lane, transaction: Transaction) -> Depth:
    """Every message of the lane in exactly one place."""
    paused, cursor, backlog = transaction.execute(
        "SELECT paused, cursor, backlog FROM lane WHERE id = ?", (lane.id,)
    ).fetchone()
    edge = row_id(lane.id, cursor)
    (in_hand,) = transaction.execute(
        "SELECT count(*) FROM fresh WHERE id BETWEEN ? AND ?", (lane.first, edge)
    ).fetchone()
    (oldest_fresh,) = transaction.execute(
        "SELECT (SELECT published_at FROM fresh WHERE id > ? AND id <= ? ORDER BY id LIMIT 1)", (edge, lane.last)
    ).fetchone()
    taken, held, suspects, due = _tracked(lane, transaction)
    scheduled, next_due_at = transaction.execute(
        "SELECT count(*), min(due_at) FROM tracked WHERE lane = ? AND state = 'due' AND due_at > ?",
        (lane.id, transaction.now),
    ).fetchone()
    (oldest_tracked,) = transaction.execute(
        "SELECT min(published_at) FROM tracked WHERE lane = ? AND (state = 'suspect' OR state = 'due' AND due_at <= ?)",
        (lane.id, transaction.now),
    ).fetchone()
    oldest = [at for at in (oldest_fresh, oldest_tracked) if at is not None]
    return Depth(
        waiting=backlog + suspects + due - scheduled,
        in_flight=in_hand + taken,
        scheduled=scheduled,
        held=held,
        dead=length(transaction, DLQ.replace("{queue}", lane.queue)),
        oldest_at=as_instant(min(oldest, default=None)),
        next_due_at=as_instant(next_due_at),
        paused=paused,
    )


def _tracked(lane: Lane, transaction: Transaction) -> tuple[int, int, int, int]:
    counts = dict(transaction.execute("SELECT state, count(*) FROM tracked WHERE lane = ? GROUP BY state", (lane.id,)))
    return counts.get("taken", 0), counts.get("held", 0), counts.get("suspect", 0), counts.get("due", 0)
