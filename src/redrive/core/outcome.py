"""What becomes of a message after an attempt: Ack, RetryLater or GiveUp. There is no fourth."""

from datetime import datetime, timedelta
from enum import Enum, StrEnum
from typing import Final, NamedTuple

from redrive.core.attempt import Attempt
from redrive.core.delivery import Delivery
from redrive.core.duration import Duration, as_duration
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.reason import Reason
from redrive.core.redrive import RedriveOutcome


class Ack(Enum):
    """The message is done. A handler that returns normally has said so."""

    ACK = "ack"


ACK: Final = Ack.ACK


class RetryLater(Exception):
    """Try again after `delay` (at least; the policy adds jitter and its cap). Spends an attempt.

    Raised in a handler, or returned for one item by a batch handler. Without a delay the policy chooses it.
    """

    def __init__(self, delay: Duration | None = None, why: str = "", *, code: str | None = None) -> None:
        super().__init__(why or "asked to be tried again later")
        self._delay = None if delay is None else as_duration(delay)
        self._code = code

    @property
    def delay(self) -> timedelta | None:
        """How long to wait at least."""
        return self._delay

    @property
    def code(self) -> str | None:
        """A short name of the cause, for people and metrics."""
        return self._code


class GiveUp(Exception):
    """Do not try again: the message becomes a dead letter now.

    Raised in a handler, or returned for one item by a batch handler.
    """

    def __init__(
        self,
        why: str = "",
        *,
        code: str | None = None,
        reason: Reason = Reason.REJECTED,
        severity: str | None = None,
    ) -> None:
        super().__init__(why or "the handler gave up")
        self._code = code
        self._reason = reason
        self._severity = severity

    @property
    def code(self) -> str | None:
        """A short name of the cause, for people and metrics."""
        return self._code

    @property
    def reason(self) -> Reason:
        """Why the message is given up, as the dead letter will say."""
        return self._reason

    @property
    def severity(self) -> str | None:
        """How bad it is, in the user's own words."""
        return self._severity


Outcome = Ack | RetryLater | GiveUp


class Settlement(NamedTuple):
    """One outcome to be carried out: the delivery, and everything that moves in the same atomic step.

    With Ack: `output` (a message for another queue of the same broker). With RetryLater: its final `delay`, and
    `trail` and `attempt`. With GiveUp: the `letter`. `report` goes to the outcomes queue if the message was redriven.
    """

    delivery: Delivery
    outcome: Outcome = ACK
    attempt: Attempt | None = None
    trail: bytes = b""
    letter: DeadLetter | None = None
    output: Message | None = None
    report: RedriveOutcome | None = None


def as_settlement(item: Settlement | Delivery) -> Settlement:
    """What a settle call was given, in full: a bare delivery is a plain success, which is what most are."""
    return item if isinstance(item, Settlement) else Settlement(item)


class SettleStatus(StrEnum):
    """What the broker answered for one settlement."""

    DONE = "done"
    REPEATED = "repeated"  # it had been carried out before; nothing was done twice
    LOST = "lost"  # the delivery had passed to somebody else; nothing was done
    REFUSED = "refused"  # the broker will not do it; the message is where it was


class Settled(NamedTuple):
    """The broker's answer for one settlement. `due_at` is the real due time of a retry."""

    status: SettleStatus
    why: str = ""
    due_at: datetime | None = None


DONE: Final = Settled(SettleStatus.DONE)
REPEATED: Final = Settled(SettleStatus.REPEATED)
LOST: Final = Settled(SettleStatus.LOST)
