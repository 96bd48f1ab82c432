"""A consumer: a handler, the queue it reads, and how it wants to be treated."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, TypedDict

from redrive.core.context import ContextRule, ContextSpec
from redrive.core.duration import Duration, as_duration
from redrive.core.errors import ConfigError
from redrive.core.keeping import PayloadMode
from redrive.core.place import DeadLetterPlace
from redrive.core.policy import RetryPolicy, RetrySpec
from redrive.core.ports import LEASE
from redrive.worker.breaker import BreakerRules
from redrive.worker.validation import ValidateSpec, Validation

CONCURRENCY = 100
CRASH_LIMIT = 3


class ConsumerOptions(TypedDict, total=False):
    """What `@app.consumer(queue, …)` accepts."""

    retry: RetrySpec
    timeout: Duration | None
    concurrency: int
    prefetch: int
    lease: Duration
    crash_limit: int
    dlq: str | DeadLetterPlace
    output: str | None
    accept: Callable[[Any], bool] | None
    context: ContextSpec | None
    stack: bool
    breaker: BreakerRules | None
    trim: Literal["acked", "never"] | None
    validate: ValidateSpec
    payload: Literal["full", "digest", "encrypted"]
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Treatment:
    """How a consumer's messages are treated, checked and complete.

    `retry`: the policy. `timeout`: the time limit of one attempt. `concurrency`: handlers running at once.
    `prefetch`: the most that is fetched ahead; None: as many as suits the broker.
    `lease`: how long a silent worker keeps its messages.
    `crash_limit`: deaths alone before a message is given up. `dlq`: where its dead letters go. `output`: the queue
    for what the handler returns. `accept`: says whether a returned value counts as success. `context`: what the
    letter tells about the message. `stack`: keep stack traces in letters. `breaker`: None switches it off.
    `trim`: where a queue keeps what was acked, whether that is taken from it; None: only from queues that we began.
    `validate`: what a message must be before its handler runs. `payload`: how much of a message its letter keeps.
    `kind`: what its letters are of, to find them by: `message`, or a word of your own.
    `moves`: an ack takes the message from the queue for every group, as collecting does.
    """

    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout: timedelta | None = None
    concurrency: int = CONCURRENCY
    prefetch: int | None = None
    lease: timedelta = LEASE
    crash_limit: int = CRASH_LIMIT
    dlq: DeadLetterPlace = field(default_factory=DeadLetterPlace)
    output: str | None = None
    accept: Callable[[Any], bool] | None = None
    context: ContextRule | None = None
    stack: bool = False
    breaker: BreakerRules | None = field(default_factory=BreakerRules)
    trim: Literal["acked", "never"] | None = None
    validate: Validation | None = None
    payload: PayloadMode = PayloadMode.FULL
    kind: str = "message"
    moves: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Treatment":
        """Read a consumer's options as people write them. Raises `ConfigError` with every mistake at once."""
        mistakes: list[str] = []
        read: dict[str, Any] = {}
        for name, value in options.items():
            if name not in _READERS:
                mistakes.append(f"{name}: no such option; there are {', '.join(sorted(_READERS))}")
                continue
            try:
                read[name] = _READERS[name](value)
            except ConfigError as error:
                mistakes.extend(error.mistakes)
            except (TypeError, ValueError) as error:
                mistakes.append(f"{name}: {error}")
        if read.get("payload") is PayloadMode.DIGEST and read.get("stack"):
            mistakes.append("stack: expected False with payload='digest': a stack quotes errors, which quote messages")
        if mistakes:
            raise ConfigError(mistakes)
        return cls(**read)


@dataclass(frozen=True, slots=True)
class Consumer:
    """A handler on a queue. `batch_size` is None for a handler of single messages."""

    queue: str
    handler: Callable[..., Any]
    treatment: Treatment
    batch_size: int | None = None

    @property
    def dlq(self) -> str | None:
        """The DLQ that this consumer names itself; None where it is the broker's default, or off."""
        place = self.treatment.dlq
        return place.dlq_of(self.queue, default="") if place.enabled and place.name else None

    @property
    def name(self) -> str:
        """The handler's name, as letters and logs show it."""
        return f"{self.handler.__module__}.{getattr(self.handler, '__qualname__', repr(self.handler))}"


def _positive(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"expected a whole number of at least 1, got {value!r}")
    return value


def _time_limit(value: Duration | None) -> timedelta | None:
    if value is None:
        return None
    return _some_time(value)


def _some_time(value: Duration) -> timedelta:
    found = as_duration(value)
    if not found:
        raise ValueError(f"expected a duration above zero, got {value!r}")
    return found


def _place(value: str | DeadLetterPlace) -> DeadLetterPlace:
    return value if isinstance(value, DeadLetterPlace) else DeadLetterPlace(name=value)


def _queue_name(value: object) -> str | None:
    if value is not None and (not isinstance(value, str) or not value):
        raise ValueError(f"expected the name of a queue, got {value!r}")
    if value is not None and "://" in value:
        raise ValueError("expected the name of a queue on the consumer's own broker, got a URL")
    return value


def _function(value: object) -> Any:
    if value is not None and not callable(value):
        raise ValueError(f"expected a function, got {value!r}")
    return value


def _yes_or_no(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected True or False, got {value!r}")
    return value


def _breaker(value: object) -> BreakerRules | None:
    if value is not None and not isinstance(value, BreakerRules):
        raise ValueError(f"expected BreakerRules(…) or None, got {value!r}")
    return value


def _trim(value: object) -> object:
    if value not in ("acked", "never", None):
        raise ValueError(f"expected 'acked', 'never' or None, got {value!r}")
    return value


def _kind(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", value):
        raise ValueError(f"expected a short word in small letters, got {value!r}")
    return value


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "retry": RetryPolicy.of,
    "timeout": _time_limit,
    "concurrency": _positive,
    "prefetch": _positive,
    "lease": _some_time,
    "crash_limit": _positive,
    "dlq": _place,
    "output": _queue_name,
    "accept": _function,
    "context": lambda value: None if value is None else ContextRule.of(value),
    "stack": _yes_or_no,
    "breaker": _breaker,
    "trim": _trim,
    "validate": Validation.of,
    "payload": PayloadMode.of,
    "kind": _kind,
}

Consumers = Sequence[Consumer]
