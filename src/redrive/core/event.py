"""What happened, as values: everyone emits these, `observe` turns them into metrics, logs and alerts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from redrive.core.duration import NOW
from redrive.core.letter import DeadLetter
from redrive.core.outcome import RetryLater, Settlement


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened on a queue. `at` is aware UTC."""

    at: datetime
    queue: str
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerFailed(Event):
    """An attempt failed and will be made again."""

    message_id: str
    attempt: int
    error_type: str
    why: str
    retry_in: float

    @classmethod
    def of(cls, item: Settlement) -> Self | None:
        """What a settlement tells of its failed attempt; None if it has none, or is no retry."""
        if item.attempt is None or not isinstance(item.outcome, RetryLater):
            return None
        return cls(
            at=item.attempt.ended_at,
            queue=item.delivery.message.queue,
            group=item.delivery.group,
            message_id=item.delivery.message.id,
            attempt=item.attempt.number,
            error_type=item.attempt.error_type,
            why=str(item.outcome),
            retry_in=(item.outcome.delay or NOW).total_seconds(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettled(Event):
    """One settle call was answered: counts per outcome, made once per call and not per message.

    `again` are those whose attempt failed and will be made again: told here, all at once, because an event for each
    costs nearly as much as judging it.
    """

    acked: int = 0
    retried: int = 0
    dead: int = 0
    lost: int = 0
    repeated: int = 0
    refused: int = 0
    again: Sequence[Settlement] = field(default=(), repr=False)

    def failures(self) -> Iterator[HandlerFailed]:
        """Each failed attempt as an event of its own, for those who need them one by one."""
        yield from filter(None, map(HandlerFailed.of, self.again))


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterWritten(Event):
    """A message was given up and its letter is in the DLQ."""

    letter: DeadLetter


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterRefused(Event):
    """A dead letter could not be written; the message is held (`dropped` False) or gone (`dropped` True)."""

    message_id: str
    payload_sha256: str
    why: str
    dropped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDropped(Event):
    """A message was given up with the DLQ off and `off = "drop"`: acked, with its hash."""

    message_id: str
    payload_sha256: str
    reason: str
    error_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectTaken(Event):
    """A message that may have killed its worker is about to run alone."""

    message_id: str
    crashes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryLost(Event):
    """A lease passed to somebody else; the handler was cancelled or its outcome ignored."""

    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPaused(Event):
    """A consumer stopped fetching: by a person, by the breaker, or by the storm guard."""

    why: str
    released: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerResumed(Event):
    """A consumer fetches again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStarted(Event):
    """A worker subscribed."""

    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStopped(Event):
    """A worker drained and signed off; `released` messages were handed back."""

    owner: str
    released: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDied(Event):
    """A supervised process ended without being asked to."""

    owner: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFaulted(Event):
    """A call to the broker failed and will be tried again."""

    call: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectorLagged(Event):
    """How far a collector is behind: what waits to be collected, and for how long the oldest of it has waited."""

    waiting: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertThresholdReached(Event):
    """More letters than the alert threshold within its window; raised once per window."""

    letters: int
    window: float
    labels: dict[str, str] = field(default_factory=dict)
