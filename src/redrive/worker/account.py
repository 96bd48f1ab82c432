"""The account: tells, once per settle call, what became of the messages in it."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

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

    queue: str
    group: str
    dlq: DeadLetterPlace


_CARRIED_OUT = (SettleStatus.DONE, SettleStatus.REPEATED)


class Account:
    """Emits events for one consumer. Counting is per call, never per message, on the healthy path."""

    def __init__(self, place: Place, around: Surroundings) -> None:
        self._place = place
        self._around = around

    def settled(self, items: Sequence[Settlement | Delivery], answers: Sequence[Settled]) -> int:
        """Tell about an answered settle call; return how many were acked."""
        others = [
            (as_settlement(item), answer)
            for item, answer in zip(items, answers, strict=True)
            if answer is not DONE or not isinstance(item, Delivery)
        ]
        where = self._where()
        tally: dict[str, Any] = {"acked": len(items) - len(others)}
        if others:
            ends = Counter(self._one(item, answer, where) for item, answer in others)
            again = [item for item, answer in others if item.trail and answer.status in _CARRIED_OUT]
            tally = {**ends, "acked": tally["acked"] + ends["acked"], "again": again}
        self._around.sink.emit(BatchSettled(**where, **tally))
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
                )
            )

    def _where(self) -> dict[str, Any]:
        return {"at": self._around.clock.now(), "queue": self._place.queue, "group": self._place.group}
