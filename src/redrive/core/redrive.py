"""Sending letters back, and hearing what became of them: the values of the redrive protocol and its pure rules."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from redrive.core.message import Headers


@dataclass(frozen=True, slots=True)
class SendBack:
    """One letter to be sent back: once per (letter_id, generation), however often it is asked for.

    `group` names the group whose private lane it goes to; None sends it to the queue itself, where every group
    sees it. `attempts_allowed` is 1 for a canary: the first failure is the answer. Without `marked`, no `rd-*`
    header is added and nothing can be reported.
    """

    letter_id: str
    generation: int
    queue: str
    body: bytes
    headers: Headers = ()
    key: bytes | None = None
    group: str | None = None
    origin: str = ""
    attempts_allowed: int | None = None
    marked: bool = True

    @property
    def once_key(self) -> str:
        """The key under which a broker remembers that this was sent."""
        return f"{self.letter_id}:{self.generation}"


@dataclass(frozen=True, slots=True)
class RedriveOutcome:
    """What became of a redriven message: told to the outcomes queue in the step that settled it."""

    letter_id: str
    generation: int
    succeeded: bool
    reported_at: datetime
    queue: str
    group: str
    message_id: str
    attempts: int = 1
    app_version: str = ""
    node: str = ""


class RedriveState(StrEnum):
    """Where a redrive is."""

    RUNNING = "running"
    PAUSED = "paused"  # by a person, or by a canary that failed in another way
    STOPPED = "stopped"  # a canary failed the same way: nothing was fixed
    CANCELLED = "cancelled"
    DONE = "done"


class ItemStatus(StrEnum):
    """Where one letter of a redrive is."""

    PLANNED = "planned"
    CLAIMED = "claimed"  # its generation is spent; it may or may not have been published
    SENT = "sent"
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # died again with the same fingerprint
    FAILED_OTHERWISE = "failed_otherwise"  # died again, but in another way
    QUIET = "quiet"  # no relapse seen within the time given for foreign consumers
    UNCONFIRMED = "unconfirmed"  # nothing heard in time; a late report still moves it
    SKIPPED = "skipped"  # changed since the preview
    UNTOUCHED = "untouched"  # the redrive ended before its turn

    @property
    def out(self) -> bool:
        """Sent or about to be, with no answer yet."""
        return self in (ItemStatus.CLAIMED, ItemStatus.SENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Redrive:
    """The record of sending letters back: a frozen selection, in steps.

    `steps` are the sizes of the canary steps, the rest is the last one. `rate` is messages per second, None for no
    limit. `to` is `lane` (the group that failed) or `queue`; `target_queue` another queue than the letter's own.
    `confirm` is `reported`, `quiet` (within `report_within`, for consumers that cannot report) or `manual`.
    """

    redrive_id: str
    created_at: datetime
    by: str
    selection: str
    total: int
    steps: tuple[int, ...] = ()
    rate: float | None = None
    to: str = "lane"
    target_queue: str | None = None
    confirm: str = "reported"
    report_within: timedelta = timedelta(minutes=5)
    over_cap: bool = False
    again: bool = False
    state: RedriveState = RedriveState.RUNNING
    why: str = ""
    ended_at: datetime | None = None

    def size_of(self, step: int) -> int:
        """How many letters belong to a step, from 0; the last step has the rest."""
        return self.steps[step] if step < len(self.steps) else max(self.total - sum(self.steps), 0)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a redrive is: items by status, over all and for each step; and on which versions they succeeded."""

    steps: tuple[dict[ItemStatus, int], ...] = ()
    versions: tuple[str, ...] = ()

    def count(self, *statuses: ItemStatus) -> int:
        """How many items are in any of these."""
        return sum(step.get(status, 0) for step in self.steps for status in statuses)


class Gate(StrEnum):
    """What the gate says after a step."""

    OPEN = "open"  # everything was reported and nothing failed: on to the next step
    WAIT = "wait"  # something is still out
    STOP = "stop"  # a canary failed in the same way
    PAUSE = "pause"  # a canary failed in another way, or was never heard of


@dataclass(frozen=True, slots=True)
class Planned:
    """One letter of a frozen selection: as it was previewed, and the step it belongs to."""

    letter_id: str
    version: int
    step: int = 0


def gate(progress: Progress, step: int, *, last: bool) -> Gate:
    """Whether a redrive may go on behind `step`. The last step has nothing behind it: it only waits or ends."""
    counts = progress.steps[step] if step < len(progress.steps) else {}
    if not last:
        if counts.get(ItemStatus.FAILED):
            return Gate.STOP
        if counts.get(ItemStatus.FAILED_OTHERWISE):
            return Gate.PAUSE
    if any(number for status, number in counts.items() if status.out or status is ItemStatus.PLANNED):
        return Gate.WAIT
    if not last and counts.get(ItemStatus.UNCONFIRMED):
        return Gate.PAUSE
    return Gate.OPEN


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a redriver knows about the consumers it waits for, to say why nothing comes back."""

    paused: str | None = None
    alive: int = 0
    versions: tuple[str, ...] = ()
    failed_on: tuple[str, ...] = ()


def why_waiting(waiting: Waiting) -> str:
    """One sentence: why a redrive waits for its reports."""
    if waiting.paused is not None:
        return f"the consumer is paused: {waiting.paused}"
    if not waiting.alive:
        return "no consumer is alive on this queue"
    if waiting.versions and set(waiting.versions) <= set(waiting.failed_on):
        return f"the consumer's version is unchanged since the failure: {', '.join(sorted(set(waiting.versions)))}"
    return "the consumer is working"
