"""Sending letters back, and hearing what became of them: the values of the redrive protocol and its pure rules."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

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
    SKIPPED = "skipped"  # changed since the preview, or there is nothing to send
    UNTOUCHED = "untouched"  # the redrive ended before its turn

    @property
    def out(self) -> bool:
        """Sent or about to be, with no answer yet."""
        return self in (ItemStatus.CLAIMED, ItemStatus.SENT)


class Target(NamedTuple):
    """Where letters are sent back to: a group's lane, or without a group the queue itself."""

    broker: str
    queue: str
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redrive:
    """The record of sending letters back: a frozen selection, in steps.

    `steps` are the sizes of the canary steps, the rest is the last one. `rate` is messages per second, None for no
    limit. `to` is `lane` (the group that failed) or `queue`; `target_queue` another queue than the letter's own.
    `confirm` is `reported`, `quiet` (within `report_within`, for consumers that cannot report) or `manual`. `targets`
    are where its letters go, `failed_on` the versions they died on. `accepted` is how many canaries that failed in
    another way, or were not heard of, a person has seen and gone on from.
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
    targets: tuple[Target, ...] = ()
    failed_on: tuple[str, ...] = ()
    accepted: int = 0
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


ENDED = frozenset({RedriveState.STOPPED, RedriveState.CANCELLED, RedriveState.DONE})
"""States that a redrive does not leave."""


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


def answered(status: ItemStatus, *, succeeded: bool, same: bool) -> ItemStatus:
    """Where a letter of a redrive is once its message was heard of, however late or often. Success is final.

    `same` is whether it died with the fingerprint it had when it was claimed. A mere report of a failure does not say:
    the letter that comes with it does.
    """
    if succeeded or status is ItemStatus.SUCCEEDED:
        return ItemStatus.SUCCEEDED
    return ItemStatus.FAILED if same else ItemStatus.FAILED_OTHERWISE


def sent(status: ItemStatus) -> ItemStatus:
    """Where a letter is once its message id is recorded: what was heard of already does not go back."""
    return ItemStatus.SENT if status is ItemStatus.CLAIMED else status


def left(status: ItemStatus) -> ItemStatus:
    """Where a letter is once its redrive has ended: nobody waits for it any more, and a late report still moves it."""
    if status is ItemStatus.PLANNED:
        return ItemStatus.UNTOUCHED
    return ItemStatus.UNCONFIRMED if status.out else status


def gate(progress: Progress, step: int, *, last: bool, accepted: int = 0) -> Gate:
    """Whether a redrive may go on behind `step`. The last step has nothing behind it: it only waits or ends.

    `accepted` is how many canaries that failed in another way, or were not heard of, a person has gone on from.
    """
    counts = progress.steps[step] if step < len(progress.steps) else {}
    so_far = Progress(progress.steps[: step + 1])
    if not last:
        if counts.get(ItemStatus.FAILED):
            return Gate.STOP
        if so_far.count(ItemStatus.FAILED_OTHERWISE) > accepted:
            return Gate.PAUSE
    if any(number for status, number in counts.items() if status.out or status is ItemStatus.PLANNED):
        return Gate.WAIT
    if not last and so_far.count(ItemStatus.FAILED_OTHERWISE, ItemStatus.UNCONFIRMED) > accepted:
        return Gate.PAUSE
    return Gate.OPEN


class Move(NamedTuple):
    """What a redriver does next: send letters of `step` (`gate` is open), wait for its reports, or halt there."""

    gate: Gate
    step: int
    done: bool = False


def next_move(redrive: Redrive, progress: Progress) -> Move:
    """The first step that is not behind us, and what it asks for. The same answer for every process that asks."""
    final = len(redrive.steps)
    for step in range(final + 1):
        found = gate(progress, step, last=step == final, accepted=redrive.accepted)
        if found in (Gate.STOP, Gate.PAUSE):
            return Move(found, step)
        counts = progress.steps[step] if step < len(progress.steps) else {}
        if counts.get(ItemStatus.PLANNED) or counts.get(ItemStatus.CLAIMED):
            return Move(Gate.OPEN, step)
        if found is Gate.WAIT:
            return Move(found, step)
    return Move(Gate.OPEN, final, done=True)


def target_of(came_from: Target, *, to: str, target_queue: str | None) -> Target:
    """Where a letter goes: to the lane of the group that failed, or to the queue itself, where every group sees it.

    A foreign letter names no group, so it goes to the queue.
    """
    group = came_from.group if to == "lane" else ""
    return Target(came_from.broker, target_queue or came_from.queue, group)


def edited_origin(origin: str, edits: int) -> str:
    """The origin of a letter's message: its own, and another one after each edit, so that its effects are its own."""
    first = origin.partition(_EDITED)[0]
    return f"{first}{_EDITED}{edits}" if edits else first


_EDITED = "~edit-"


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
