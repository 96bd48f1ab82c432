"""The retry policy, and the two questions asked of it: may an attempt start, and what if it has failed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final, NamedTuple

from redrive.core.backoff import (
    Additive,
    AnyJitter,
    Backoff,
    Exponential,
    Jitter,
    Table,
    draw_delay,
    read_delay,
)
from redrive.core.classify import Classified, Classifier, unwrap
from redrive.core.delivery import Delivery
from redrive.core.duration import NOW, Duration
from redrive.core.errors import ConfigError
from redrive.core.outcome import GiveUp, RetryLater
from redrive.core.reason import Reason

DEFAULT_RETRIES: Final = 3
DEFAULT_BACKOFF: Final = Exponential()
DEFAULT_RULES: Final = Classifier()
TOLD_CAP: Final = timedelta(days=1)
REMEMBERED: Final = 1024
"""How many decisions are remembered for a policy."""

_FAILED: Final = "attempt {} of {} failed with {}: "
_AGAIN: Final = _FAILED + "retry in {}, {}"
_EXHAUSTED: Final = _FAILED + "attempts exhausted"
_REJECTED: Final = _FAILED + "not retried, {}"
_TOO_LATE: Final = _FAILED + "a retry in {} would be beyond the budget of {}"


@dataclass(frozen=True, slots=True, init=False)
class RetryPolicy:
    """How often, how long apart, for how long in all, and for which exceptions an attempt is made again.

    `max_retries=3` is at most 4 attempts; `max_attempts=4` says the same. `backoff` gives the delay, `jitter`
    spreads it. `budget`: no attempt starts later than this after the first. `classify` tells which exceptions
    are worth another attempt. `told_cap` limits what is believed of a delay that a server (`Retry-After`) or
    the handler (`RetryLater`) asks for, so that nobody can hide a message for a year; jitter comes on top.

    >>> policy = RetryPolicy()
    >>> [policy.get_delay(n) for n in (1, 2, 3, 10)]
    [1.0, 2.0, 4.0, 30.0]
    >>> policy.should_retry(TimeoutError(), 3), policy.should_retry(TimeoutError(), 4)
    (True, False)

    Short forms, as in `@app.consumer("orders", retry=...)`:

    >>> RetryPolicy.of(5).max_attempts
    6
    >>> table = RetryPolicy.of([1, "5s", "1m"])
    >>> table.max_retries, table.get_delay(2), table.jitter.value
    (3, 5.0, 'none')

    An immutable value: `dataclasses.replace` makes another. Every mistake is reported at once:

    >>> RetryPolicy(max_retries=-1, budget="soon")
    Traceback (most recent call last):
    redrive.core.errors.ConfigError: max_retries: expected a whole number of 0 or more, got -1
    budget: expected seconds, a timedelta, or text such as '30s', '5m', '1.5h', '250ms', got 'soon'
    """

    max_retries: int
    backoff: Backoff
    jitter: AnyJitter
    budget: timedelta | None
    classify: Classifier
    told_cap: timedelta

    def __init__(
        self,
        max_retries: int | None = None,
        *,
        backoff: Backoff = DEFAULT_BACKOFF,
        jitter: AnyJitter | str = Jitter.FULL,
        budget: Duration | None = None,
        classify: Classifier = DEFAULT_RULES,
        told_cap: Duration = TOLD_CAP,
        max_attempts: int | None = None,
    ) -> None:
        mistakes: list[str] = []
        settings: dict[str, Any] = {
            "max_retries": _read_retries(max_retries, max_attempts, mistakes=mistakes),
            "backoff": backoff,
            "jitter": _read_jitter(jitter, mistakes=mistakes),
            "budget": None if budget is None else read_delay(budget, key="budget", mistakes=mistakes),
            "classify": classify,
            "told_cap": read_delay(told_cap, key="told_cap", mistakes=mistakes),
        }
        if not isinstance(settings["backoff"], Backoff):
            mistakes.append(f"backoff: expected Exponential, Table or Constant, got {backoff!r}")
        if not isinstance(settings["classify"], Classifier):
            mistakes.append(f"classify: expected a Classifier, got {classify!r}")
        if mistakes:
            raise ConfigError(mistakes)
        for name, value in settings.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, spec: "RetrySpec") -> "RetryPolicy":
        """The policy that `spec` stands for. Raises `ConfigError`.

        None is the default, a number is `max_retries`, a sequence is a table of exact delays, one per retry.
        """
        if isinstance(spec, RetryPolicy):
            return spec
        if spec is None:
            return cls()
        if isinstance(spec, int) and not isinstance(spec, bool):
            return cls(spec)
        if isinstance(spec, Sequence) and not isinstance(spec, str | bytes):
            backoff = Table(spec) if spec else DEFAULT_BACKOFF
            return cls(len(spec), backoff=backoff, jitter=Jitter.NONE)
        raise ConfigError(f"retry: expected a RetryPolicy, a number of retries, a list of delays or None, got {spec!r}")

    @property
    def max_attempts(self) -> int:
        """How often the handler may run and fail: one more than `max_retries`."""
        return self.max_retries + 1

    def get_delay(self, n: int) -> float:
        """The seconds to wait after failed attempt `n`, from 1, before jitter."""
        return self.backoff.delay(n).total_seconds()

    def should_retry(self, error: BaseException, attempt: int) -> bool:
        """Whether another attempt follows when attempt number `attempt`, from 1, failed with `error`."""
        return attempt <= self.max_retries and self.classify(error).retry


RetrySpec = RetryPolicy | int | Sequence[Duration] | None
"""A retry policy as people write it; `RetryPolicy.of` reads it."""


class _Retry(RetryLater):
    """The policy's own: its delay is final, and its text is put together when it is read, for mostly nobody asks."""

    def __init__(self, delay: timedelta, form: str, parts: tuple[object, ...], *, code: str | None = None) -> None:
        self._delay = delay
        self._code = code
        self._said = form, parts

    def __str__(self) -> str:
        return _sentence(*self._said)


class _End(GiveUp):
    """The policy's own: its text is put together when it is read."""

    def __init__(self, reason: Reason, form: str, parts: tuple[object, ...]) -> None:
        self._code = self._severity = None
        self._reason = reason
        self._said = form, parts

    def __str__(self) -> str:
        return _sentence(*self._said)


class Decision(NamedTuple):
    """What becomes of a message, and whether the breaker should count it as a sign of an outage.

    A `RetryLater` here has its final delay: drawn once, to be carried out as it is. `said` explains an outcome that is
    the handler's own.
    """

    outcome: RetryLater | GiveUp
    transient: bool = False
    said: str = ""

    @property
    def why(self) -> str:
        """One sentence for an operator; it holds names and numbers, never the text of an exception."""
        return self.said or str(self.outcome)


def decide(policy: RetryPolicy, error: BaseException, *, delivery: Delivery, now: datetime, random: Random) -> Decision:
    """What becomes of a delivery whose attempt has failed with `error`. Always answers.

    `delivery.failures` is the count before this failure. Crashes spend no retry: `crash_limit` is their rule.
    """
    error = unwrap(error)
    known = policy.classify(error, now=now)
    return _decide(policy, error, known, delivery=delivery, now=now, random=random)


class Decisions:
    """What `decide` says for one policy, remembered where it must be the same again: what fails in heaps fails alike.

    Never remembered is what chance or the time has a part in, and an exception that has more to tell than its class.
    """

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._known: dict[tuple[type, int, int, int | None], Decision] = {}

    def after(self, error: BaseException, *, delivery: Delivery, now: datetime, random: Random) -> Decision:
        """What becomes of a delivery whose attempt has failed with `error`. Always answers."""
        policy = self._policy
        judged = policy.classify.recall(error)
        if judged is None:
            return decide(policy, error, delivery=delivery, now=now, random=random)
        alike = type(error), delivery.failures, delivery.crashes, delivery.attempts_allowed
        known = self._known.get(alike)
        if known is not None:
            return known
        decision = _decide(policy, error, judged, delivery=delivery, now=now, random=random)
        by_chance = policy.jitter is not Jitter.NONE and isinstance(decision.outcome, RetryLater)
        if policy.budget is None and not by_chance and len(self._known) < REMEMBERED:
            self._known[alike] = decision
        return decision


def _decide(
    policy: RetryPolicy,
    error: BaseException,
    known: Classified,
    *,
    delivery: Delivery,
    now: datetime,
    random: Random,
) -> Decision:
    number, crashes = delivery.failures + 1, delivery.crashes
    allowed = policy.max_retries + 1
    if delivery.attempts_allowed is not None:
        allowed = min(allowed, max(delivery.attempts_allowed, 1))
    count = number + crashes, max(allowed, number) + crashes
    if isinstance(error, GiveUp):
        named = "" if error.code is None else f" ({str(error.code)[:40]})"
        return Decision(error, said=f"attempt {count[0]} of {count[1]}: {known.why}{named}")

    failed = *count, type(error).__name__[:80]
    if not known.retry:
        return Decision(_End(Reason.REJECTED, _REJECTED, (*failed, known.why)))
    if number >= allowed:
        return Decision(_End(Reason.ATTEMPTS_EXHAUSTED, _EXHAUSTED, failed), known.transient)

    told = None if known.told is None else min(known.told, policy.told_cap)
    delay = draw_delay(policy.backoff, policy.jitter, n=number, random=random, told=told)
    if policy.budget is not None and _elapsed(delivery, now=now) + delay > policy.budget:
        return Decision(_End(Reason.DEADLINE, _TOO_LATE, (*failed, delay, policy.budget)), known.transient)
    code = error.code if isinstance(error, RetryLater) else None
    retry = _Retry(delay, _AGAIN, (*failed, delay, known.why), code=code)
    return Decision(retry, known.transient)


def decide_start(policy: RetryPolicy, *, delivery: Delivery, now: datetime, crash_limit: int) -> Decision | None:
    """Why this attempt must not start: expired, crash limit reached, or budget spent. None: it may."""
    expires_at = delivery.message.expires_at
    if expires_at is not None and expires_at <= now:
        expired = "the message expired at {}, before it could run"
        return Decision(_End(Reason.EXPIRED, expired, (expires_at.isoformat(),)))
    if delivery.crashes >= crash_limit:
        died = "its worker died {} times while it ran: the crash limit is {}"
        return Decision(_End(Reason.WORKER_CRASH, died, (delivery.crashes, crash_limit)))
    started = delivery.first_attempt_at is not None
    if started and policy.budget is not None and _elapsed(delivery, now=now) > policy.budget:
        late = "attempt {} would start beyond the budget of {}"
        return Decision(_End(Reason.DEADLINE, late, (delivery.attempt, policy.budget)))
    return None


def _elapsed(delivery: Delivery, *, now: datetime) -> timedelta:
    """The time since the first attempt started; if this is the first, since the delivery was received."""
    return max(NOW, now - (delivery.first_attempt_at or delivery.received_at))


def _sentence(form: str, parts: tuple[object, ...]) -> str:
    return form.format(*(_text(part) if isinstance(part, timedelta) else part for part in parts))


def _text(delay: timedelta) -> str:
    return f"{delay.total_seconds():.3f}".rstrip("0").rstrip(".") + " s"


def _read_retries(max_retries: int | None, max_attempts: int | None, *, mistakes: list[str]) -> int:
    known = len(mistakes)
    for key, value, least in (("max_retries", max_retries, 0), ("max_attempts", max_attempts, 1)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            mistakes.append(f"{key}: expected a whole number of {least} or more, got {value!r}")
    if len(mistakes) > known or (max_retries is None and max_attempts is None):
        return DEFAULT_RETRIES
    if max_attempts is None:
        return max_retries or 0
    if max_retries is not None and max_attempts != max_retries + 1:
        mistakes.append(
            f"max_attempts: expected {max_retries + 1} beside max_retries={max_retries}, got {max_attempts}"
        )
    return max_attempts - 1


def _read_jitter(jitter: AnyJitter | str, *, mistakes: list[str]) -> AnyJitter:
    if isinstance(jitter, Additive):
        return jitter
    try:
        return Jitter(jitter)
    except ValueError:
        names = ", ".join(f"'{known}'" for known in Jitter)
        mistakes.append(f"jitter: expected {names} or Additive(...), got {jitter!r}")
        return Jitter.NONE
