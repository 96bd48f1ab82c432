"""What happened, as values: everyone emits these, `observe` turns them into metrics, logs and alerts."""

from dataclasses import dataclass, field
from datetime import datetime

from redrive.core.letter import DeadLetter


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened on a queue. `at` is aware UTC."""

    at: datetime
    queue: str
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettled(Event):
    """One settle call was answered: counts per outcome, made once per call and not per message."""

    acked: int = 0
    retried: int = 0
    dead: int = 0
    lost: int = 0
    repeated: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerFailed(Event):
    """An attempt failed and will be made again."""

    message_id: str
    attempt: int
    error_type: str
    why: str
    retry_in: float


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
