"""From how a handler ended to what is settled: the one place in the worker that asks the policy."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final, NamedTuple

from redrive.core.attempt import Attempt, Trail, append_attempt, close_trail, load_trail
from redrive.core.classify import unwrap
from redrive.core.delivery import Delivery
from redrive.core.event import HandlerFailed, MessageDropped
from redrive.core.failure import Failure, words_of
from redrive.core.keeping import STAGE
from redrive.core.letter import DeadLetter, Letters, Source, payload_hash
from redrive.core.message import Message, as_headers
from redrive.core.outcome import ACK, GiveUp, RetryLater, Settlement
from redrive.core.policy import Decision, Decisions, decide_start
from redrive.core.ports import Clock, EventSink
from redrive.core.ports.cipher import Cipher
from redrive.core.ports.tracing import Tracing
from redrive.core.reason import Reason
from redrive.core.redrive import RedriveOutcome
from redrive.core.row import Row
from redrive.worker.breaker import Breaker
from redrive.worker.consumer import Consumer
from redrive.worker.keeping import keeping_of, safe_text
from redrive.worker.payload import InvalidPayload, encode
from redrive.worker.traced import answered


class Release(NamedTuple):
    """A delivery to be handed back without spending an attempt."""

    delivery: Delivery


Ended = Settlement | Delivery | Row | Release
"""How deliveries leave a lane. A bare one, or a row of them, went well, and nothing goes out with its ack: most do."""


def deliveries_of(ended: Ended) -> list[Delivery]:
    """The deliveries that have ended."""
    if isinstance(ended, Row):
        return ended.deliveries()
    return [ended if isinstance(ended, Delivery) else ended.delivery]


class NotAccepted(Exception):
    """The handler returned a value that `accept=` does not count as success."""


class WorkerCrash(GiveUp):
    """The message's process died too often while it ran alone."""


class Expired(GiveUp):
    """The message's own expiry passed before it could run."""


class DeadlinePassed(GiveUp):
    """The policy's budget was spent before another attempt could start."""


log = logging.getLogger(__name__)

UNJUDGED: Final = timedelta(seconds=30)

_new: Final = tuple.__new__  # every failure makes two tuples, whose own constructors cost three times as much

_NOT_STARTED: Mapping[Reason, type[GiveUp]] = {
    Reason.WORKER_CRASH: WorkerCrash,
    Reason.EXPIRED: Expired,
    Reason.DEADLINE: DeadlinePassed,
}


_OWN = (*_NOT_STARTED.values(),)


class Surroundings(NamedTuple):
    """What every part of a worker needs from outside."""

    clock: Clock
    sink: EventSink
    random: Random
    cipher: Cipher | None = None
    tracing: Tracing | None = None


class Outcomes:
    """Turns results and exceptions into settlements. Pure but for the clock, the random and the breaker it is given.

    `opened` is called when a failure opens the breaker. With `plain`, a success is an Ack and nothing else. With
    `has_budget`, `before` must be asked every time. `untold` are successes that the breaker has not heard of.
    """

    def __init__(
        self,
        consumer: Consumer,
        *,
        source: Source,
        around: Surroundings,
        breaker: Breaker | None,
        opened: Callable[[], None],
    ) -> None:
        self._consumer = consumer
        self._treatment = consumer.treatment
        self._source = source
        self._around = around
        self._breaker = breaker
        self._opened = opened
        self.plain = self._treatment.accept is None and self._treatment.output is None
        self.has_budget = self._treatment.retry.budget is not None
        self._decisions = Decisions(self._treatment.retry)
        context, self._masked, self._keep = keeping_of(self._treatment, cipher=around.cipher)
        self._letters = Letters(source, context)
        self.untold = 0
        self.tracing = around.tracing

    @property
    def minds_failures_only(self) -> bool:
        """Whether nothing is to be done for a message that succeeds at its first attempt but to ack it."""
        return self.plain and not self.has_budget and self.tracing is None

    def before(self, delivery: Delivery) -> Settlement | None:
        """The end of a message that may not start: expired, out of budget, or crashed too often."""
        if not (delivery.crashes or self.has_budget or delivery.message.expires_at):
            return None
        now = self._around.clock.now()
        decision = decide_start(
            self._treatment.retry, delivery=delivery, now=now, crash_limit=self._treatment.crash_limit
        )
        if decision is None:
            return None
        error = _not_started(decision.outcome)
        failure = Failure.of(error, stack=self._treatment.stack)
        trail = load_trail(delivery.trail)
        letter = self._letter(delivery, decision, error=error, failure=failure, trail=trail, now=now)
        return Settlement(delivery, decision.outcome, letter=letter, report=self._report(delivery, success=False))

    def success(self, delivery: Delivery, result: Any = None, *, took: float = 0.0) -> Ended:
        """The handler returned: Ack, with its output, unless `accept=` says otherwise."""
        if self.plain and delivery.letter_id is None:
            self.untold += 1
            return delivery
        accept, output = self._treatment.accept, self._treatment.output
        try:
            if accept is not None and not accept(result):
                raise NotAccepted(f"accept= does not count {result!r:.200} as success")  # noqa: TRY301
            message = None if output is None or result is None else _output(output, result)
            message = None if message is None else answered(self.tracing, delivery, message)
        except Exception as error:  # noqa: BLE001 - accept= and encoding are the user's code
            return self.failure(delivery, error, took=took)
        self.untold += 1
        return Settlement(delivery, ACK, output=message, report=self._report(delivery, success=True))

    def tell_breaker(self) -> bool:
        """Tell the breaker of successes that it has not heard of; True if they close it."""
        count, self.untold = self.untold, 0
        return self._breaker is not None and count > 0 and self._breaker.succeeded(count)

    def failure(self, delivery: Delivery, error: BaseException, *, took: float) -> Ended:
        """The attempt ended in an exception: the policy decides, the breaker may overrule it.

        Never raises: what cannot be judged waits and is tried again, and the log says why.
        """
        try:
            return self._judged(delivery, error, took=took)
        except Exception as mistake:
            mistake.__context__ = None  # the handler's error, whose text may be the message's
            said = type(error).__name__
            log.exception("cannot judge the failure of %s: %s", delivery.message.id, said, exc_info=mistake)
            return Settlement(delivery, RetryLater(UNJUDGED), trail=delivery.trail)

    def tell(self, item: Settlement) -> None:
        """Tell of a failed attempt that will be made again, where no settle call does so for many."""
        failed = HandlerFailed.of(item)
        if failed is not None:
            self._around.sink.emit(failed)

    def _judged(self, delivery: Delivery, error: BaseException, *, took: float) -> Ended:
        now = self._around.clock.now()
        validation = self._treatment.validate
        if validation is not None and delivery.letter_id is None and validation.acks(error):
            return self._refused(delivery, error, now)
        decision = self._decisions.after(error, delivery=delivery, now=now, random=self._around.random)
        if self._hand_back(delivery, decision, error):
            return Release(delivery)
        outcome = decision.outcome
        failure = None if isinstance(outcome, RetryLater) else Failure.of(error, stack=self._treatment.stack)
        attempt = self._attempt(delivery, words_of(error) if failure is None else failure[:3], now, took)
        if failure is None:
            trail = append_attempt(delivery.trail, attempt)
            return _new(Settlement, (delivery, outcome, attempt, trail, None, None, None))
        closed = close_trail(delivery.trail, attempt)
        letter = self._letter(delivery, decision, error=error, failure=failure, trail=closed, now=now)
        report = None if delivery.letter_id is None else self._report(delivery, success=False)
        return _new(Settlement, (delivery, outcome, attempt, b"", letter, None, report))

    def _attempt(self, delivery: Delivery, words: tuple[str, str, str | None], now: datetime, took: float) -> Attempt:
        error_type, text, error_code = words
        number, generation = delivery.failures + delivery.crashes + 1, delivery.generation
        began, node = now - timedelta(0, took), self._source.node
        return _new(Attempt, (number, began, now, error_type, self._masked(text), error_code, False, node, generation))

    def _refused(self, delivery: Delivery, error: BaseException, now: datetime) -> Settlement:
        """The end of a message that is invalid and not worth a letter: acked, and told of with its hash."""
        error_type, _, error_code = words_of(error)
        self._around.sink.emit(
            MessageDropped(
                at=now,
                broker=self._source.broker,
                queue=delivery.message.queue,
                group=delivery.group,
                message_id=delivery.message.id,
                payload_sha256=payload_hash(delivery.message.body),
                reason=Reason.INVALID,
                error_type=error_type,
                error_code=error_code or "",
            )
        )
        return Settlement(delivery, ACK)

    def _hand_back(self, delivery: Delivery, decision: Decision, error: BaseException) -> bool:
        breaker = self._breaker
        if breaker is None:
            return False
        was_closed = breaker.why is None
        if self.untold and was_closed:  # it judges by shares: what went well before must not come after this
            breaker.succeeded(self.untold)
            self.untold = 0
        hand_back = False
        again = delivery.failures > 0
        if decision.transient:
            hand_back = breaker.failed(delivery.message.id, again=again)
        elif isinstance(decision.outcome, GiveUp) or not isinstance(unwrap(error), RetryLater):
            breaker.erred(delivery.message.id, again=again)  # a handler that asks for a retry has no failure to tell
        if was_closed and breaker.why is not None:
            self._opened()
        return hand_back

    def _letter(
        self,
        delivery: Delivery,
        decision: Decision,
        *,
        error: BaseException,
        failure: Failure,
        trail: Trail,
        now: datetime,
    ) -> DeadLetter:
        outcome = decision.outcome
        reason = outcome.reason if isinstance(outcome, GiveUp) else Reason.UNKNOWN
        letter = self._letters.write(delivery, failure=failure, reason=reason, trail=trail, now=now)
        if isinstance(error, InvalidPayload):
            letter = replace(letter, context={**letter.context, STAGE: error.stage})
        return letter if self._keep is None else self._keep(letter, safe_text(error, own=_OWN))

    def _report(self, delivery: Delivery, *, success: bool) -> RedriveOutcome | None:
        if delivery.letter_id is None:
            return None
        return RedriveOutcome(
            letter_id=delivery.letter_id,
            generation=delivery.generation,
            succeeded=success,
            reported_at=self._around.clock.now(),
            queue=delivery.message.queue,
            group=delivery.group,
            message_id=delivery.message.id,
            attempts=delivery.attempt,
            app_version=self._source.app_version,
            node=self._source.node,
        )


def _not_started(outcome: RetryLater | GiveUp) -> BaseException:
    """An error with a name of its own, so that letters of one kind are seen as one kind."""
    if not isinstance(outcome, GiveUp):
        return outcome
    return _NOT_STARTED.get(outcome.reason, GiveUp)(str(outcome), reason=outcome.reason)


def _output(queue: str, result: object) -> Message:
    if isinstance(result, Message):
        return result._replace(queue=queue)
    return Message(id="", queue=queue, body=encode(result), headers=as_headers(None))
