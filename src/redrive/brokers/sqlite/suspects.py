"""Suspects: what was in the hands of a worker that died, and the runs alone that clear or convict it."""

from functools import cache

from redrive.brokers.process import is_dead
from redrive.brokers.sqlite.hold import Holder, finish, rows_in, take, take_away
from redrive.brokers.sqlite.rows import TRACKED, Lane, tracked_delivery
from redrive.brokers.sqlite.transaction import Transaction, as_instant
from redrive.core.attempt import Attempt, dump_trail, extend_trail, load_trail
from redrive.core.delivery import Delivery
from redrive.core.ports import Obituary

SUSPECT = (
    f"SELECT hold, {TRACKED} FROM tracked WHERE lane = ? AND state = 'suspect'"  # noqa: S608 - a constant
    " ORDER BY due_at, published_at, id LIMIT 1"
)


def ended_holds(lane: Lane, transaction: Transaction) -> list[tuple[int, bool, str]]:
    """The holds of a lane whose time is over: number, whether it ran alone, and how it ended."""
    dead = cache(is_dead)
    holds = transaction.execute(
        "SELECT id, alone, owner, process, lease_until FROM hold WHERE lane = ? AND ended IS NULL", (lane.id,)
    ).fetchall()
    ended = []
    for hold, alone, owner, process, lease_until in holds:
        if dead(process):
            ended.append((hold, bool(alone), f"the worker process died (owner {owner})"))
        elif lease_until <= transaction.now:
            ended.append((hold, bool(alone), f"the lease ended (owner {owner})"))
    return ended


def anything_ended(lane: Lane, transaction: Transaction) -> bool:
    """Whether `reap` would find anything: a quick read."""
    return bool(_lapsed(lane, transaction) or ended_holds(lane, transaction))


def reap(lane: Lane, transaction: Transaction) -> None:
    """Make suspects of everything that was in the hands of a worker that is dead or has let its lease end."""
    for hold, row in _lapsed(lane, transaction):
        if row in rows_in(transaction, hold):
            take_away(transaction, hold, [row], alone=False)
            finish(transaction, [hold])
        transaction.execute("DELETE FROM lapsing WHERE hold = ? AND id = ?", (hold, row))
    for hold, alone, how in ended_holds(lane, transaction):
        take_away(transaction, hold, rows_in(transaction, hold), alone=alone)
        transaction.execute("UPDATE hold SET ended_at = ?, ended = ? WHERE id = ?", (transaction.now, how, hold))
        finish(transaction, [hold])  # all but those that are the mark of a crash


def anything_suspect(lane: Lane, transaction: Transaction) -> bool:
    """Whether `reap_and_claim` would find anything: a quick read."""
    return count_suspects(lane, transaction) > 0 or anything_ended(lane, transaction)


def reap_and_claim(lane: Lane, holder: Holder, obituary: Obituary | None, transaction: Transaction) -> Delivery | None:
    """One suspect, if there is one now."""
    reap(lane, transaction)
    return _claim(lane, holder, obituary, transaction)


def count_suspects(lane: Lane, transaction: Transaction) -> int:
    """How many suspects wait."""
    (count,) = transaction.execute(
        "SELECT count(*) FROM tracked WHERE lane = ? AND state = 'suspect'", (lane.id,)
    ).fetchone()
    return int(count)


def _claim(lane: Lane, holder: Holder, obituary: Obituary | None, transaction: Transaction) -> Delivery | None:
    """One suspect, its crash counted if it was running alone when its last worker died, under a mark of its own."""
    (paused,) = transaction.execute("SELECT paused FROM lane WHERE id = ?", (lane.id,)).fetchone()
    found = None if paused is not None else transaction.execute(SUSPECT, (lane.id,)).fetchone()
    if found is None:
        return None
    before, *row = found
    hold = take(lane, holder, transaction, alone=True)
    delivery = tracked_delivery(lane, tuple(row), hold=hold, at=transaction.at, alone=True)
    if before is not None:
        delivery = _crashed(delivery, before, obituary, transaction)
    transaction.execute(
        "UPDATE tracked SET state = 'taken', hold = ?, crashes = ?, trail = ?, first_attempt_at = coalesce("
        "first_attempt_at, (SELECT taken_at FROM hold WHERE id = ?)) WHERE id = ?",
        (hold, delivery.crashes, delivery.trail or None, before, row[0]),
    )
    finish(transaction, [before] if before is not None else [])
    return delivery


def _crashed(delivery: Delivery, hold: int, obituary: Obituary | None, transaction: Transaction) -> Delivery:
    owner, taken_at, ended_at, ended = transaction.execute(
        "SELECT owner, taken_at, ended_at, ended FROM hold WHERE id = ?", (hold,)
    ).fetchone()
    attempt = Attempt(
        number=delivery.attempt,
        started_at=as_instant(taken_at),
        ended_at=as_instant(ended_at),
        error_type="WorkerCrash",
        error_message=obituary.text if obituary is not None and obituary.owner == owner else ended,
        crash=True,
        node=owner,
        generation=delivery.generation,
    )
    return delivery._replace(
        crashes=delivery.crashes + 1,
        trail=dump_trail(extend_trail(load_trail(delivery.trail), attempt)),
        first_attempt_at=delivery.first_attempt_at or attempt.started_at,
    )


def _lapsed(lane: Lane, transaction: Transaction) -> list[tuple[int, int]]:
    """Rows whose own lease ended before their hold's."""
    return transaction.execute(
        "SELECT hold, id FROM lapsing WHERE id BETWEEN ? AND ? AND lease_until <= ?",
        (lane.first, lane.last, transaction.now),
    ).fetchall()
