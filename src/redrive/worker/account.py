"""The account: tells, once per settle call, what became of the messages in it."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from redrive.core.delivery import Delivery
from redrive.core.event import (
    BatchSettled,
    BrokerFaulted,
    DeliveryLost,
    LetterRefused,
    MessageDropped,
)
from redrive.core.letter import DeadLetter
from redrive.core.outcome import (
    DONE,
    REPEATED,
    GiveUp,
    RetryLater,
    Settled,
    Settlement,
    SettleStatus,
    as_settlement,
)
from redrive.core.place import DeadLetterPlace
from redrive.core.row import InRows
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
        unheard: bool = False,
    ) -> int:
        """Tell about an answered settle call, and the handlers' runs before it; return how many were acked.

        If an earlier call with these items went `unheard`, that one did what is repeated now: it is told as done.
        """
        if unheard:
            answers = [_done(answer) if answer.status is SettleStatus.REPEATED else answer for answer in answers]
        others = _others(items, answers)
        acked = len(items) - len(others)
        tally = self._tally(others, acked) if others else {"acked": acked}
        self._around.sink.emit(BatchSettled(**self._where(), **tally, runs=runs))
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

    def _tally(self, others: Sequence[tuple[Settlement, Settled]], acked: int) -> dict[str, Any]:
        """What there is to say of these, and of so many plain successes beside them."""
        ends: Counter[str] = Counter(acked=acked)
        again: list[Settlement] = []
        dead: list[Settlement] = []
        tried: Counter[int] = Counter()
        late_by: list[float] = []
        retried, done = 0, SettleStatus.DONE
        for item, (status, _, _) in others:
            delivery, outcome = item.delivery, item.outcome
            due_at = delivery.due_at
            if due_at is not None:  # by the broker's clock, which may be ahead of ours
                late_by.append(max((delivery.received_at - due_at).total_seconds(), 0.0))
            if item.trail and status in _CARRIED_OUT:
                again.append(item)
            if status is not done:
                ends[status.value] += 1
                if status is SettleStatus.LOST:
                    self.lost(delivery.message.id)
            elif isinstance(outcome, RetryLater):
                retried += 1
            elif isinstance(outcome, GiveUp):
                dead.append(item)
            else:
                ends["acked"] += 1
                tried[delivery.failures + delivery.crashes] += 1
        ends["retried"] = retried
        del tried[0]
        letters = self._letters(dead)
        told = {"again": again, "letters": letters, "after_failures": tried, "late_by": late_by}
        return {**ends, "dead": len(dead), **told}

    def _letters(self, dead: Sequence[Settlement]) -> list[DeadLetter]:
        """The letters that these have left in the DLQ; without one, what was dropped is told."""
        if self._place.dlq.enabled:
            return [item.letter for item in dead if item.letter is not None]
        for item in dead if self._place.dlq.off == "drop" else ():
            if item.letter is not None:
                self._around.sink.emit(
                    MessageDropped(
                        **self._where(),
                        message_id=item.delivery.message.id,
                        payload_sha256=item.letter.payload_sha256,
                        reason=item.letter.reason,
                        error_type=item.letter.error_type,
                        error_code=item.letter.error_code or "",
                    )
                )
        return []

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


def _done(answer: Settled) -> Settled:
    return DONE if answer == REPEATED else answer._replace(status=SettleStatus.DONE)


def _others(items: Sequence[Settlement | Delivery], answers: Sequence[Settled]) -> list[tuple[Settlement, Settled]]:
    """All but plain successes of messages that neither failed nor waited before, which most are."""
    if isinstance(items, InRows) and answers[: items.in_rows].count(DONE) == items.in_rows:
        return _others(items.others, answers[items.in_rows :])
    if answers.count(DONE) == len(items) == len(answers):
        rest = [item for item in items if item.__class__ is not Delivery or item[DUE_AT] or item[CRASHES]]
        return [(as_settlement(item), DONE) for item in rest]
    return [
        (as_settlement(item), answer)
        for item, answer in zip(items, answers, strict=True)
        if answer is not DONE or item.__class__ is not Delivery or item[DUE_AT] or item[CRASHES]
    ]
