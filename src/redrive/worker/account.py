"""The account: tells, once per settle call, what became of the messages in it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from redrive.core.event import (
    BatchSettled,
    BrokerFaulted,
    DeliveryLost,
    LetterRefused,
    LetterWritten,
    MessageDropped,
)
from redrive.core.outcome import ACK, DONE, GiveUp, Settled, Settlement, SettleStatus
from redrive.core.place import DeadLetterPlace
from redrive.worker.outcomes import Surroundings


class Place(NamedTuple):
    """Where a consumer works."""

    queue: str
    group: str
    dlq: DeadLetterPlace


class Account:
    """Emits events for one consumer. Counting is per call, never per message, on the healthy path."""

    def __init__(self, place: Place, around: Surroundings) -> None:
        self._place = place
        self._around = around

    def settled(self, items: Sequence[Settlement], answers: Sequence[Settled]) -> int:
        """Tell about an answered settle call; return how many were acked."""
        count = len(items)
        acked = sum([item.outcome is ACK for item in items])
        if acked == count and answers.count(DONE) == count:
            self._around.sink.emit(BatchSettled(**self._where(), acked=count))
            return count
        tally: dict[str, Any] = dict.fromkeys(("acked", "retried", "dead", "lost", "repeated", "refused"), 0)
        for item, answer in zip(items, answers, strict=True):
            tally[self._one(item, answer)] += 1
        self._around.sink.emit(BatchSettled(**self._where(), **tally))
        return int(tally["acked"])

    def letter_refused(self, item: Settlement, why: str, *, dropped: bool) -> None:
        """Tell that a dead letter could not be written."""
        self._around.sink.emit(
            LetterRefused(
                **self._where(),
                message_id=item.delivery.message.id,
                payload_sha256=item.letter.payload_sha256 if item.letter else "",
                why=why,
                dropped=dropped,
            )
        )

    def faulted(self, call: str, error: Exception) -> None:
        """Tell that a call to the broker failed and will be made again."""
        self._around.sink.emit(BrokerFaulted(**self._where(), call=call, why=str(error)))

    def lost(self, message_id: str) -> None:
        """Tell that a delivery has passed to somebody else."""
        self._around.sink.emit(DeliveryLost(**self._where(), message_id=message_id))

    def _one(self, item: Settlement, answer: Settled) -> str:
        if answer.status is SettleStatus.DONE:
            if item.outcome is ACK:
                return "acked"
            if isinstance(item.outcome, GiveUp):
                self._dead(item)
                return "dead"
            return "retried"
        if answer.status is SettleStatus.LOST:
            self.lost(item.delivery.message.id)
        return answer.status.value

    def _dead(self, item: Settlement) -> None:
        letter = item.letter
        if letter is None:
            return
        if self._place.dlq.enabled:
            self._around.sink.emit(LetterWritten(**self._where(), letter=letter))
        elif self._place.dlq.off == "drop":
            self._around.sink.emit(
                MessageDropped(
                    **self._where(),
                    message_id=item.delivery.message.id,
                    payload_sha256=letter.payload_sha256,
                    reason=letter.reason,
                    error_type=letter.error_type,
                )
            )

    def _where(self) -> dict[str, Any]:
        return {"at": self._around.clock.now(), "queue": self._place.queue, "group": self._place.group}
