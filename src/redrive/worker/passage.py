"""One message on its way through a wrapped handler: how often it failed, and what comes next."""

import time
from datetime import timedelta
from typing import NamedTuple, cast

from redrive.core.delivery import Delivery
from redrive.core.letter import DeadLetter
from redrive.core.outcome import GiveUp, RetryLater, Settlement
from redrive.core.redrive import RedriveOutcome
from redrive.worker.foreign import is_signal
from redrive.worker.outcomes import Outcomes


class GivenUp(NamedTuple):
    """What is left of a message that was given up. `error` is the handler's latest exception, if it ran."""

    letter: DeadLetter
    error: Exception


class Passage:
    """Asks the policy as the worker does, and keeps what a broker would keep between attempts. Belongs to one call."""

    def __init__(self, delivery: Delivery, *, outcomes: Outcomes) -> None:
        self._delivery = delivery
        self._outcomes = outcomes
        self._error: Exception | None = None
        self._letter: DeadLetter | None = None
        self._began = 0.0

    def given_up(self) -> GivenUp | None:
        """The end of a message that may not be tried (again); None starts an attempt."""
        late = None if self._letter is not None else self._outcomes.before(self._delivery)
        if late is not None:
            self._letter = late.letter
            self._error = self._error or cast("GiveUp", late.outcome)
        self._began = time.monotonic()
        return None if self._letter is None or self._error is None else GivenUp(self._letter, self._error)

    def failed(self, error: Exception) -> timedelta | None:
        """How long to wait before the next attempt, None if there is none.

        Raises the error again if it is meant for the framework.
        """
        if is_signal(error):
            raise error
        took = time.monotonic() - self._began
        # Without a breaker nothing is handed back: the end is always a settlement.
        end = cast("Settlement", self._outcomes.failure(self._delivery, error, took=took))
        self._outcomes.tell(end)
        self._error = error
        self._letter = end.letter
        self._delivery = self._delivery._replace(failures=self._delivery.failures + 1, trail=end.trail)
        return end.outcome.delay if isinstance(end.outcome, RetryLater) else None

    def succeeded(self) -> RedriveOutcome | None:
        """What there is to report: nothing unless the message was redriven."""
        end = self._outcomes.success(self._delivery)
        return end.report if isinstance(end, Settlement) else None
