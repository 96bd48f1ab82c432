"""The account: tells, once per settle call, what became of the messages in it."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from redrive.core.delivery import Delivery
from redrive.core.event import (
    BatchSettled,
    BrokerFaulted,
    DeliveryLost,
    LetterRefused,
    LetterWritten,
    MessageDropped,
)
from redrive.core.outcome import ACK, DONE, GiveUp, Settled, Settlement, SettleStatus, as_settlement
from redrive.core.place import DeadLetterPlace
from redrive.worker.outcomes import Surroundings


class Place(NamedTuple):
    """Where a consumer works."""

    broker: str
    queue: str
    group: str
    dlq: DeadLetterPlace


_CARRIED_OUT = (SettleStatus.DONE, SettleStatus.REPEATED)

# Where fields stand in a Delivery: read by place, at a third of the cost, for every message.
CRASHES: Final = 4
DUE_AT: Final = 13

_ERROR = re.compile(r"(\w+): ")
_NUMBER = re.compile(r"\d+")
_LONGEST_REASON = 80


class Account:
    """Emits events for one consumer. Counting is per call, never per message, on the healthy path."""

    def __init__(self, place: Place, around: Surroundings) -> None:
        self._place = place
        self._around = around

    def settled(
        self,
        items: Sequence[Settlement | Delivery],
        answers: Sequence[Settled],
        *,
        runs: Sequence[tuple[float, int]] = (),
    ) -> int:
        """Tell about an answered settle call, and the handlers' runs before it; return how many were acked."""
        others = _others(items, answers)
        where = self._where()
        tally: dict[str, Any] = {"acked": len(items) - len(others)}
        if others:
            ends = [self._one(item, answer, where) for item, answer in others]
            counts = Counter(ends)
            tally = {
                **counts,
                "acked": tally["acked"] + counts["acked"],
                "again": [item for item, answer in others if item.trail and answer.status in _CARRIED_OUT],
                "after_failures": _after_failures(
                    item.delivery for (item, _), end in zip(others, ends, strict=True) if end == "acked"
                ),
                "late_by": _late_by(item.delivery for item, _ in others),
            }
        self._around.sink.emit(BatchSettled(**where, **tally, runs=runs))
        return int(tally["acked"])

    def letter_refused(self, item: Settlement, why: str, *, dropped: bool) -> None:
        """Tell that a dead letter could not be written."""
        self._around.sink.emit(
            LetterRefused(
                **self._where(),
                message_id=item.delivery.message.id,
                payload_sha256=item.letter.payload_sha256 if item.letter else "",
                why=why,
                failure_reason=failure_reason(why),
                letter=item.letter,
                dropped=dropped,
            )
        )

    def faulted(self, call: str, error: Exception, *, items: Sequence[object] = ()) -> None:
        """Tell that a call to the broker failed and will be made again, and which letters it would have written."""
        letters = [item.letter for item in items if isinstance(item, Settlement) and item.letter is not None]
        self._around.sink.emit(
            BrokerFaulted(
                **self._where(),
                call=call,
                why=str(error),
                error_type=type(error).__name__,
                letters=letters if self._place.dlq.enabled else (),
            )
        )

    def lost(self, message_id: str) -> None:
        """Tell that a delivery has passed to somebody else."""
        self._around.sink.emit(DeliveryLost(**self._where(), message_id=message_id))

    def _one(self, item: Settlement, answer: Settled, where: dict[str, Any]) -> str:
        if answer.status is SettleStatus.DONE:
            if item.outcome is ACK:
                return "acked"
            if isinstance(item.outcome, GiveUp):
                self._dead(item, where)
                return "dead"
            return "retried"
        if answer.status is SettleStatus.LOST:
            self.lost(item.delivery.message.id)
        return answer.status.value

    def _dead(self, item: Settlement, where: dict[str, Any]) -> None:
        letter = item.letter
        if letter is None:
            return
        if self._place.dlq.enabled:
            self._around.sink.emit(LetterWritten(**where, letter=letter))
        elif self._place.dlq.off == "drop":
            self._around.sink.emit(
                MessageDropped(
                    **where,
                    message_id=item.delivery.message.id,
                    payload_sha256=letter.payload_sha256,
                    reason=letter.reason,
                    error_type=letter.error_type,
                    error_code=letter.error_code or "",
                )
            )

    def _where(self) -> dict[str, Any]:
        place = self._place
        return {"at": self._around.clock.now(), "broker": place.broker, "queue": place.queue, "group": place.group}


def failure_reason(why: str) -> str:
    """A short name for why a broker refused a letter: the error's type, or the sentence without its numbers.

    >>> failure_reason("OverflowError: too large: 9"), failure_reason("orders:dlq: 700 of 512 bytes")
    ('OverflowError', 'orders:dlq: # of # bytes')
    """
    error = _ERROR.match(why)
    return error[1] if error else _NUMBER.sub("#", why[:_LONGEST_REASON])


def _others(items: Sequence[Settlement | Delivery], answers: Sequence[Settled]) -> list[tuple[Settlement, Settled]]:
    """All but plain successes of messages that neither failed nor waited before, which most are."""
    if answers.count(DONE) == len(items) == len(answers):
        rest = [item for item in items if item.__class__ is not Delivery or item[DUE_AT] or item[CRASHES]]
        return [(as_settlement(item), DONE) for item in rest]
    return [
        (as_settlement(item), answer)
        for item, answer in zip(items, answers, strict=True)
        if answer is not DONE or item.__class__ is not Delivery or item[DUE_AT] or item[CRASHES]
    ]


def _after_failures(acked: Iterable[Delivery]) -> dict[int, int]:
    """How many had failed attempts behind them, by how many."""
    before = (delivery.failures + delivery.crashes for delivery in acked)
    return dict(Counter(number for number in before if number))


def _late_by(settled: Iterable[Delivery]) -> list[float]:
    """By how many seconds each that had a due time was handed out after it. The broker's clock may be ahead of ours."""
    due = [(delivery.received_at, delivery.due_at) for delivery in settled]
    return [max((received - due_at).total_seconds(), 0.0) for received, due_at in due if due_at is not None]
