"""How much of a lane's work is where, in quick reads however much waits.

What was published and not yet taken is kept count of; only what has a story of its own is counted here, by its index.
"""

from typing import Final

from redrive.brokers.sqlite.letters import length
from redrive.brokers.sqlite.rows import Lane
from redrive.brokers.sqlite.schema import row_id
from redrive.brokers.sqlite.transaction import Transaction, as_instant
from redrive.core.place import DLQ, named
from redrive.core.ports import Depth

FRESH: Final = """
    SELECT (SELECT count(*) FROM fresh WHERE id BETWEEN ?1 AND ?2),
           (SELECT published_at FROM fresh WHERE id > ?2 AND id <= ?3 ORDER BY id LIMIT 1)
"""
TRACKED: Final = """
    SELECT (SELECT count(*) FROM tracked WHERE lane = ?1 AND state = 'taken'),
           (SELECT count(*) FROM tracked WHERE lane = ?1 AND state = 'held'),
           (SELECT count(*) FROM tracked WHERE lane = ?1 AND state = 'suspect'),
           (SELECT min(published_at) FROM tracked WHERE lane = ?1 AND state = 'suspect')
"""
DUE: Final = """
    SELECT (SELECT count(*) FROM tracked WHERE lane = ?1 AND state = 'due'),
           (SELECT count(*) FROM tracked WHERE lane = ?1 AND state = 'due' AND due_at <= ?2),
           (SELECT min(published_at) FROM tracked WHERE lane = ?1 AND state = 'due' AND due_at <= ?2),
           (SELECT due_at FROM tracked WHERE lane = ?1 AND state = 'due' AND due_at > ?2 ORDER BY due_at LIMIT 1)
"""


def depth(lane: Lane, transaction: Transaction) -> Depth:
    """Every message of the lane in exactly one place."""
    paused, cursor, backlog = transaction.execute(
        "SELECT paused, cursor, backlog FROM lane WHERE id = ?", (lane.id,)
    ).fetchone()
    edges = (lane.first, row_id(lane.id, cursor), lane.last)
    in_hand, oldest_fresh = transaction.execute(FRESH, edges).fetchone()
    taken, held, suspects, oldest_suspect = transaction.execute(TRACKED, (lane.id,)).fetchone()
    all_due, due, oldest_due, next_due_at = transaction.execute(DUE, (lane.id, transaction.now)).fetchone()
    waiting_since = [at for at in (oldest_fresh, oldest_suspect, oldest_due) if at is not None]
    return Depth(
        waiting=backlog + suspects + due,
        in_flight=in_hand + taken,
        scheduled=all_due - due,
        held=held,
        dead=length(transaction, named(DLQ, lane.queue)),
        oldest_at=as_instant(min(waiting_since, default=None)),
        next_due_at=as_instant(next_due_at),
        paused=paused,
    )
