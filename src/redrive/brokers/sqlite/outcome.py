"""One outcome carried out: the message leaves its place in the step that puts it into the next one."""

from typing import NamedTuple

from redrive.brokers.names import check_names
from redrive.brokers.sqlite.hold import was_given_back
from redrive.brokers.sqlite.letters import put_letter
from redrive.brokers.sqlite.queues import enqueue_one
from redrive.brokers.sqlite.rows import Lane, Token
from redrive.brokers.sqlite.schema import COPY_TO_TRACKED, lane_of
from redrive.brokers.sqlite.transaction import MICROSECOND, Transaction, as_instant, as_micros
from redrive.core.duration import NOW
from redrive.core.errors import ConfigError
from redrive.core.message import Message, without_reserved
from redrive.core.outcome import DONE, LOST, REPEATED, GiveUp, RetryLater, Settled, Settlement, SettleStatus
from redrive.core.place import DLQ, OUTCOMES, DeadLetterPlace, named
from redrive.core.wire import dump_outcome


class Desk(NamedTuple):
    """Where outcomes are carried out: the lane they are for, and the DLQ of its consumer."""

    lane: Lane
    place: DeadLetterPlace

    @property
    def dlq(self) -> str:
        """The name of the DLQ."""
        return self.place.dlq_of(self.lane.queue, default=DLQ)

    @property
    def outcomes(self) -> str:
        """The queue in which the fate of redriven messages is told."""
        return named(OUTCOMES, self.lane.queue)


def carry_out(desk: Desk, item: Settlement, transaction: Transaction) -> Settled:
    """Carry out one outcome if its message is still in hand. Raises whatever makes that impossible."""
    token, outcome = item.delivery.token, item.outcome
    if lane_of(token[1]) != desk.lane.id:
        return LOST
    why = _mistake(desk, item)
    if why:
        still_in_hand = _in_hand(token, transaction)
        return Settled(SettleStatus.REFUSED, why) if still_in_hand else _too_late(item, transaction)
    answer = DONE
    if isinstance(outcome, RetryLater):
        due_at = transaction.now + (outcome.delay or NOW) // MICROSECOND
        answer = DONE._replace(due_at=as_instant(due_at))
        moved = _reschedule(item, due_at, transaction)
        transaction.touched.add(desk.lane.id)
    elif isinstance(outcome, GiveUp) and desk.place.off == "hold":
        moved = _set_aside(item, transaction)
    else:
        moved = _remove(token, transaction)
    if not moved:
        return _too_late(item, transaction)
    _send_along(desk, item, transaction)
    return answer


def _mistake(desk: Desk, item: Settlement) -> str:
    """Why an item cannot be carried out."""
    if isinstance(item.outcome, RetryLater) and item.outcome.delay is None:
        return "a retry needs its final delay"
    if isinstance(item.outcome, GiveUp) and desk.place.enabled and item.letter is None:
        return "giving up needs a letter"
    if item.output is not None:
        try:
            check_names(queue=item.output.queue)
        except ConfigError as error:
            return f"output: {error}"
    return ""


def _reschedule(item: Settlement, due_at: int, transaction: Transaction) -> bool:
    """Put it into the due index, one failure on."""
    hold, row, tracked = item.delivery.token
    first_at = as_micros(item.attempt.started_at if item.attempt is not None else item.delivery.received_at)
    if tracked:
        updated = transaction.execute(
            "UPDATE tracked SET state = 'due', hold = NULL, due_at = ?, failures = failures + 1,"
            " first_attempt_at = coalesce(first_attempt_at, ?), trail = coalesce(?, trail)"
            " WHERE id = ? AND hold = ? AND state = 'taken'",
            (due_at, first_at, item.trail or None, row, hold),
        )
        return updated.rowcount == 1
    return _track(row, ("due", due_at, 1, first_at, item.trail or None), transaction)


def _set_aside(item: Settlement, transaction: Transaction) -> bool:
    """Hold it without further attempts, because there is no DLQ for it."""
    hold, row, tracked = item.delivery.token
    if tracked:
        updated = transaction.execute(
            "UPDATE tracked SET state = 'held', hold = NULL, due_at = ?, trail = coalesce(?, trail)"
            " WHERE id = ? AND hold = ? AND state = 'taken'",
            (transaction.now, item.trail or None, row, hold),
        )
        return updated.rowcount == 1
    return _track(row, ("held", transaction.now, 0, None, item.trail or None), transaction)


def _track(row: int, story: tuple[object, ...], transaction: Transaction) -> bool:
    if transaction.execute(COPY_TO_TRACKED, (*story, row, row)).rowcount != 1:
        return False
    transaction.execute("DELETE FROM fresh WHERE id = ?", (row,))
    return True


def _remove(token: Token, transaction: Transaction) -> bool:
    hold, row, tracked = token
    deleted = (
        transaction.execute("DELETE FROM tracked WHERE id = ? AND hold = ? AND state = 'taken'", (row, hold))
        if tracked
        else transaction.execute("DELETE FROM fresh WHERE id = ?", (row,))
    )
    return deleted.rowcount == 1


def _send_along(desk: Desk, item: Settlement, transaction: Transaction) -> None:
    """What goes out in the same step: the letter, the output, the report."""
    if isinstance(item.outcome, GiveUp) and desk.place.enabled and item.letter is not None:
        put_letter(transaction, desk.dlq, item.letter)
    if item.output is not None:
        enqueue_one(transaction, item.output._replace(headers=without_reserved(item.output.headers)))
    if item.report is not None:
        enqueue_one(transaction, Message("", desk.outcomes, dump_outcome(item.report)))


def _in_hand(token: Token, transaction: Transaction) -> bool:
    hold, row, tracked = token
    found = (
        transaction.execute("SELECT 1 FROM tracked WHERE id = ? AND hold = ? AND state = 'taken'", (row, hold))
        if tracked
        else transaction.execute("SELECT 1 FROM fresh WHERE id = ?", (row,))
    )
    return bool(found.fetchall())


def _too_late(item: Settlement, transaction: Transaction) -> Settled:
    """The answer for what is no longer in hand: it was settled before, or it has passed to somebody else."""
    token = item.delivery.token
    if was_given_back(transaction, token):
        return LOST
    if not isinstance(item.outcome, RetryLater):
        return REPEATED
    found = transaction.execute("SELECT due_at FROM tracked WHERE id = ?", (token[1],)).fetchone()
    return REPEATED if found is None else REPEATED._replace(due_at=as_instant(found[0]))
