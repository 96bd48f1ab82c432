"""What happened, as values: everyone emits these, `observe` turns them into metrics, logs and alerts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from redrive.core.context import trace_of
from redrive.core.duration import NOW
from redrive.core.letter import DeadLetter
from redrive.core.outcome import RetryLater, Settlement


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened on a queue. `at` is aware UTC; what is empty is not known, or of no concern."""

    at: datetime
    queue: str
    group: str = ""
    broker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerFailed(Event):
    """An attempt failed and will be made again."""

    message_id: str
    attempt: int
    error_type: str
    why: str
    retry_in: float
    letter_id: str = ""
    trace_id: str = ""

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
            letter_id=item.delivery.letter_id or "",
            trace_id=trace_of(item.delivery.message.headers),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettled(Event):
    """One settle call was answered: counts per outcome, made once per call and not per message.

    `again` are those whose attempt failed and will be made again, `letters` are in the DLQ now: told here, all at once,
    because an event for each costs nearly as much as judging it. `after_failures` says how many of the acked had failed
    before, by how often; `late_by` by how many seconds those that had a due time were handed out after it. `runs` are
    handler runs since the call before: seconds, and how many took so long.
    """

    acked: int = 0
    retried: int = 0
    dead: int = 0
    lost: int = 0
    repeated: int = 0
    refused: int = 0
    again: Sequence[Settlement] = field(default=(), repr=False)
    letters: Sequence[DeadLetter] = field(default=(), repr=False)
    after_failures: Mapping[int, int] = field(default_factory=dict)
    late_by: Sequence[float] = ()
    runs: Sequence[tuple[float, int]] = field(default=(), repr=False)

    def failures(self) -> Iterator[HandlerFailed]:
        """Each failed attempt as an event of its own, for those who need them one by one."""
        yield from filter(None, map(HandlerFailed.of, self.again))

    def written(self) -> Iterator["LetterWritten"]:
        """Each letter as an event of its own, for those who need them one by one."""
        for letter in self.letters:
            yield LetterWritten(at=self.at, queue=self.queue, group=self.group, broker=self.broker, letter=letter)


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterWritten(Event):
    """A message was given up and its letter is in the DLQ. What a worker settles is told by `BatchSettled.written`."""

    letter: DeadLetter


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterRefused(Event):
    """A dead letter could not be written; the message is held (`dropped` False) or gone (`dropped` True).

    `failure_reason` is a short name for `why`, the same for all that are refused alike.
    """

    message_id: str
    payload_sha256: str
    why: str
    failure_reason: str = "refused"
    letter: DeadLetter | None = field(default=None, repr=False)
    dropped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDropped(Event):
    """A message was acked without a letter, and only its hash is told.

    Given up with the DLQ off and `off = "drop"`, or invalid with a code of which nobody wants letters.
    """

    message_id: str
    payload_sha256: str
    reason: str
    error_type: str
    error_code: str = ""


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
class WorkerBeat(Event):
    """A worker's heartbeat: how many messages it has in hand, and how many suspects of its group wait."""

    in_flight: int
    suspects: int


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
    """A call to the broker failed and will be tried again. `letters` are those that it would have written."""

    call: str
    why: str
    error_type: str = ""
    letters: Sequence[DeadLetter] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectorLagged(Event):
    """How far a collector is behind: what waits to be collected, and for how long the oldest of it has waited."""

    waiting: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LettersCollected(Event):
    """The store has taken in letters and outcomes. `incidents` were opened by it, for the first time or again."""

    new: int = 0
    reopened: int = 0
    resolved: int = 0
    known: int = 0
    incidents: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveUnheard(Event):
    """So many letters of a redrive were not heard of in time: `quiet` where no news was to be the good news."""

    redrive_id: str
    letters: int
    quiet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveHalted(Event):
    """A redriver has ended, stopped or paused a redrive; `state` is where it is now."""

    redrive_id: str
    state: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCalled(Event):
    """A call to the letter store has ended, well or not, after so many seconds."""

    call: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DlqSized(Event):
    """How many entries a broker's DLQ of this queue has."""

    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LettersSized(Event):
    """How many letters of this queue the store has open or parked, and how many seconds ago the oldest of them died."""

    letters: int
    oldest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseSeen(Event):
    """Whether somebody has paused this group of a queue, as the broker says."""

    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingFailed(Event):
    """What is measured from time to time could not be measured at `place`: `store`, or `broker:` and its name."""

    place: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertsTold(Event):
    """A notifier was told of alerts: so many that fire, and so many that have ended."""

    notifier: str
    firing: int = 0
    resolved: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifierFailed(Event):
    """A notifier could not be told of alerts; it is told again later."""

    notifier: str
    alerts: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertThresholdReached(Event):
    """More letters than the alert threshold within its window; raised once per window."""

    letters: int
    window: float
    labels: dict[str, str] = field(default_factory=dict)
