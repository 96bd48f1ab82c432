"""Settling many: nearly everything that is settled is a plain ack.

All plain acks of one call are a few range deletes. Each of the others is a step of its own (`outcome`), and a bad one
is undone without the rest.
"""

from collections.abc import Sequence
from itertools import compress
from typing import Final

from redrive.brokers.sqlite.errors import is_for_now
from redrive.brokers.sqlite.hold import finish
from redrive.brokers.sqlite.outcome import Desk, carry_out
from redrive.brokers.sqlite.rows import Lane, Token
from redrive.brokers.sqlite.schema import lane_of
from redrive.brokers.sqlite.transaction import Transaction
from redrive.core.errors import BrokerUnavailable
from redrive.core.outcome import ACK, DONE, Settled, Settlement, SettleStatus

COUNT: Final = "SELECT count(*) FROM fresh WHERE id BETWEEN ? AND ?"
NUMBERS: Final = "SELECT id FROM fresh WHERE id BETWEEN ? AND ? ORDER BY id"
DELETE: Final = "DELETE FROM fresh WHERE id BETWEEN ? AND ?"


def settle(desk: Desk, items: Sequence[Settlement], transaction: Transaction) -> list[Settled]:
    """Carry out outcomes; one answer per item, in order."""
    tokens: list[Token] = []
    plain: list[int] = []
    others: list[int] = []
    for index, (delivery, outcome, _, _, _, output, report) in enumerate(items):
        token = delivery.token
        tokens.append(token)
        if outcome is ACK and output is None and report is None and not token[2]:
            plain.append(index)
        else:
            others.append(index)
    if len(set(tokens)) < len(tokens):  # one delivery, several outcomes: the first counts
        plain, others = [], list(range(len(items)))
    answers = [DONE] * len(items)
    _answer(desk, items, others, answers, transaction)
    if not _ack(desk.lane, [tokens[index][1] for index in plain], transaction):
        _answer(desk, items, plain, answers, transaction)
    finish(transaction, {hold for hold, _, _ in tokens})
    return answers


def settle_acks(
    desk: Desk, items: Sequence[Settlement], full: BrokerUnavailable, transaction: Transaction
) -> list[Settled]:
    """When the file is full: acks make room; everything else needs some, and is refused.

    Raises the error again if there is no ack among them.
    """
    acks = [item.outcome is ACK and item.output is None and item.report is None for item in items]
    if not any(acks):
        raise full
    done = iter(settle(desk, list(compress(items, acks)), transaction))
    refused = Settled(SettleStatus.REFUSED, str(full))
    return [next(done) if ack else refused for ack in acks]


def _ack(lane: Lane, rows: list[int], transaction: Transaction) -> bool:
    """Ack these rows of fresh if every one of them is there; otherwise leave all as they are."""
    if not rows:
        return True
    rows.sort()
    if lane_of(rows[0]) != lane.id or lane_of(rows[-1]) != lane.id:
        return False
    stretches = _stretches(rows, transaction)
    transaction.executemany(DELETE, stretches)
    return bool(stretches)


def _stretches(rows: list[int], transaction: Transaction) -> list[tuple[int, int]]:
    """What to delete so that exactly these rows, which are sorted, go; nothing if one of them is not there."""
    span = rows[0], rows[-1]
    gaps = span[1] - span[0] + 1 - len(rows)
    if 0 < gaps <= len(rows) and rows == [row for (row,) in transaction.execute(NUMBERS, span)]:
        return [span]  # in the gaps was what has just been settled otherwise
    runs = _runs(rows) if gaps else [span]
    there = sum(transaction.execute(COUNT, run).fetchone()[0] for run in runs)
    return runs if there == len(rows) else []


def _runs(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Sorted numbers as stretches without a gap.

    >>> _runs([3, 4, 5, 9, 11, 12])
    [(3, 5), (9, 9), (11, 12)]
    """
    runs = []
    first = last = rows[0]
    for row in rows:
        if row > last + 1:
            runs.append((first, last))
            first = row
        last = row
    return [*runs, (first, last)]


def _answer(
    desk: Desk, items: Sequence[Settlement], chosen: Sequence[int], answers: list[Settled], transaction: Transaction
) -> None:
    """Carry out the items with these numbers, and put their answers in place."""
    if chosen:
        carried_out = _each(desk, [items[index] for index in chosen], transaction)
        for index, answer in zip(chosen, carried_out, strict=True):
            answers[index] = answer


def _each(desk: Desk, items: Sequence[Settlement], transaction: Transaction) -> list[Settled]:
    """Each on its own. That all are good is the rule: only when one is not, each gets a savepoint."""
    transaction.execute("SAVEPOINT items")
    try:
        answers = [carry_out(desk, item, transaction) for item in items]
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not fail the others
        _raise_if_hopeless(error, transaction)
        transaction.execute("ROLLBACK TO items")
        answers = [_carefully(desk, item, transaction) for item in items]
    transaction.execute("RELEASE items")
    return answers


def _carefully(desk: Desk, item: Settlement, transaction: Transaction) -> Settled:
    transaction.execute("SAVEPOINT item")
    try:
        answer = carry_out(desk, item, transaction)
    except Exception as error:  # noqa: BLE001 - the same
        _raise_if_hopeless(error, transaction)
        transaction.execute("ROLLBACK TO item")
        answer = Settled(SettleStatus.REFUSED, f"{type(error).__name__}: {error}")
    transaction.execute("RELEASE item")
    return answer


def _raise_if_hopeless(error: Exception, transaction: Transaction) -> None:
    """The file's trouble is not the item's, and nothing goes on in a transaction that SQLite has undone."""
    if is_for_now(error) or not transaction.open:
        raise error
