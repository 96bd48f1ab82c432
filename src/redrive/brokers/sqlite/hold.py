"""Holds: which messages are in whose hands, until when, and how they leave them unsettled."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from redrive.brokers.sqlite.rows import Lane, Token
from redrive.brokers.sqlite.schema import COPY_TO_TRACKED, lane_of
from redrive.brokers.sqlite.transaction import Transaction


class Holder(NamedTuple):
    """The worker into whose hands messages are put; the lease in microseconds."""

    owner: str
    process: str
    lease: int


def take(
    lane: Lane,
    holder: Holder,
    transaction: Transaction,
    *,
    span: tuple[int | None, int | None] = (None, None),
    alone: bool = False,
) -> int:
    """A new hold, which spans these rows of fresh: the one note that all of them may have started."""
    owner, process, lease = holder
    return transaction.insert(
        "INSERT INTO hold (lane, owner, process, alone, taken_at, lease_until, lo, hi) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (lane.id, owner, process, alone, transaction.now, transaction.now + lease, *span),
    )


def rows_in(transaction: Transaction, hold: int) -> set[int]:
    """The rows that are still in the hands of this hold."""
    found = transaction.execute(
        "SELECT fresh.id FROM hold JOIN fresh ON fresh.id BETWEEN lo AND hi WHERE hold.id = ?1 AND ended IS NULL"
        " UNION ALL SELECT id FROM tracked WHERE hold = ?1 AND state = 'taken'",
        (hold,),
    )
    return {row for (row,) in found}


def extend(lane: Lane, tokens: Sequence[Token], lease: int, transaction: Transaction) -> set[Token]:
    """Renew the lease of these rows and of no others; return those that are no longer in hand."""
    lost: set[Token] = set()
    for hold, mine in _by_hold(lane, tokens, lost=lost).items():
        held = rows_in(transaction, hold)
        lost.update(token for token in mine if token[1] not in held)
        rest = held.difference(row for _, row, _ in mine)
        if rest:
            transaction.executemany(
                "INSERT OR IGNORE INTO lapsing SELECT id, ?, lease_until FROM hold WHERE id = ?",
                [(row, hold) for row in rest],
            )
        transaction.execute(
            "UPDATE hold SET lease_until = ? WHERE id = ? AND ended IS NULL", (transaction.now + lease, hold)
        )
        transaction.executemany("DELETE FROM lapsing WHERE hold = ? AND id = ?", [token[:2] for token in mine])
    return lost


def release(lane: Lane, tokens: Sequence[Token], transaction: Transaction) -> None:
    """Hand back what is still in hand, nothing spent. A suspect stays one: nothing has cleared it."""
    released = [token for token in tokens if lane_of(token[1]) == lane.id and _let_go(token, transaction)]
    note_given_back(transaction, [(hold, row) for hold, row, _ in released])
    finish(transaction, {hold for hold, _, _ in released})
    if released:
        transaction.touched.add(lane.id)


def take_away(transaction: Transaction, hold: int, rows: Iterable[int], *, alone: bool) -> None:
    """Make suspects of rows that are in the hands of a hold.

    One that ran alone keeps the number of its hold: when it is next taken, that is one more crash.
    """
    listed = [(row,) for row in rows]
    for (row,) in listed:
        transaction.execute(COPY_TO_TRACKED, ("suspect", transaction.now, 0, None, None, row, row))
    transaction.executemany("DELETE FROM fresh WHERE id = ?", listed)
    transaction.executemany(
        "UPDATE tracked SET state = 'suspect', due_at = ?, hold = ? WHERE id = ?",
        [(transaction.now, hold if alone else None, row) for (row,) in listed],
    )
    note_given_back(transaction, [(hold, row) for (row,) in listed])


def note_given_back(transaction: Transaction, rows: Sequence[tuple[int, int]]) -> None:
    """Remember that these (hold, row) pairs were not settled: whoever settles them late has lost them."""
    transaction.executemany(
        "INSERT OR IGNORE INTO given_back VALUES (?, ?, ?)", [(hold, row, transaction.now) for hold, row in rows]
    )


def was_given_back(transaction: Transaction, token: Token) -> bool:
    """Whether this row left this hold without being settled."""
    hold, row, _ = token
    return bool(transaction.execute("SELECT 1 FROM given_back WHERE hold = ? AND id = ?", (hold, row)).fetchall())


def finish(transaction: Transaction, holds: Iterable[int]) -> None:
    """Forget those of these holds in which nothing is left."""
    for hold in holds:
        forgotten = transaction.execute(
            "DELETE FROM hold WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM fresh WHERE id BETWEEN lo AND hi)"
            " AND NOT EXISTS (SELECT 1 FROM tracked WHERE hold = ?1)",
            (hold,),
        )
        if forgotten.rowcount:
            transaction.execute("DELETE FROM lapsing WHERE hold = ?", (hold,))


def _by_hold(lane: Lane, tokens: Sequence[Token], *, lost: set[Token]) -> dict[int, list[Token]]:
    found: dict[int, list[Token]] = {}
    for token in tokens:
        if lane_of(token[1]) == lane.id:
            found.setdefault(token[0], []).append(token)
        else:
            lost.add(token)
    return found


def _let_go(token: Token, transaction: Transaction) -> bool:
    hold, row, tracked = token
    if tracked:
        alone = "EXISTS (SELECT 1 FROM hold WHERE id = ?2 AND alone)"
        updated = transaction.execute(
            f"UPDATE tracked SET state = iif({alone}, 'suspect', 'due'), due_at = ?1, hold = NULL"  # noqa: S608
            " WHERE id = ?3 AND hold = ?2 AND state = 'taken'",
            (transaction.now, hold, row),
        )
        return updated.rowcount == 1
    moved = transaction.execute(COPY_TO_TRACKED, ("due", transaction.now, 0, None, None, row, row)).rowcount == 1
    if moved:
        transaction.execute("DELETE FROM fresh WHERE id = ?", (row,))
    return moved
