"""Whether an exception is worth another attempt, and whether it looks like an outage."""

import errno
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from redrive.core.errors import BrokerUnavailable, ConfigError, StoreUnavailable
from redrive.core.evidence import causes_of, codes_of, is_mute, status_of, tells_nothing, told_delay
from redrive.core.outcome import GiveUp, RetryLater

Rule = type[BaseException] | Callable[[BaseException], bool]
"""An exception type, which covers its subclasses, or a function that says yes or no."""

_CONFLICT: Final = 409
_SERVER_FAULT: Final = 500
_RETRIED_4XX: Final = frozenset({408, _CONFLICT, 425, 429})
_UNPAID_CODES: Final = frozenset({"insufficient_quota", "insufficient_credits", "payment_required"})
_UNPAID_PREFIX: Final = "billing_"

_NETWORK_TYPES: Final = (ConnectionError, TimeoutError, BrokerUnavailable, StoreUnavailable)
_NETWORK_ERRNOS: Final = frozenset(
    {
        errno.EADDRNOTAVAIL,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENETDOWN,
        errno.ENETRESET,
        errno.ENETUNREACH,
        errno.ENOTCONN,
    }
)
# By the top package and the name of a class, subclasses included: nothing is imported to be recognised.
_NETWORK_NAMES: Final = frozenset(
    {
        ("asyncio", "IncompleteReadError"),
        ("http", "HTTPException"),
        ("socket", "gaierror"),
        ("socket", "herror"),
        ("ssl", "SSLError"),
        ("urllib", "URLError"),
        ("aiohttp", "ClientConnectionError"),
        ("aiohttp", "ClientPayloadError"),
        ("asyncpg", "PostgresConnectionError"),
        ("botocore", "ConnectionError"),
        ("botocore", "HTTPClientError"),
        ("httpx", "NetworkError"),
        ("httpx", "ProxyError"),
        ("httpx", "RemoteProtocolError"),
        ("httpx", "TimeoutException"),
        ("psycopg", "OperationalError"),
        ("psycopg2", "OperationalError"),
        ("pymongo", "ConnectionFailure"),
        ("pymysql", "OperationalError"),
        ("redis", "ClusterDownError"),
        ("redis", "ConnectionError"),
        ("redis", "ReadOnlyError"),
        ("redis", "TimeoutError"),
        ("redis", "TryAgainError"),
        ("requests", "ChunkedEncodingError"),
        ("requests", "ConnectionError"),
        ("requests", "Timeout"),
        ("sqlalchemy", "TimeoutError"),
    }
)

_CLASSES: Final = 1024  # whose judgement is remembered; a program that makes up more pays for the rest

_NO_FAILURES: Final = (RetryLater, GiveUp, BaseExceptionGroup)


class Classified(NamedTuple):
    """What is thought of an exception.

    `retry`: another attempt may help. `transient`: it looks like an outage, and the breaker counts it.
    `told`: how long somebody asks to wait. `why`: the rule that spoke, in words.
    """

    retry: bool
    transient: bool
    told: timedelta | None
    why: str


@dataclass(frozen=True, slots=True, init=False)
class Classifier:
    """Rules about exceptions: called with one, it answers `Classified` and never raises.

    The exception is looked at, then what it was raised from, outermost first; the first that a rule knows
    decides. The rules, in their order: functions in `permanent`, then in `retryable` (one that raises has not
    said yes); the nearest class named in either; codes about quota and billing (permanent); the HTTP status
    (408, 409, 425, 429 and 5xx are retried, other 4xx are permanent); errors of the network (retried).

    What no rule knows is retried, but is not transient: a `ValueError` is rather the trouble of one message than
    an outage, and an outage that surfaces as such is left to the storm guard; `retryable` names what you know
    better. Nor are 409, a quarrel over one message, and a `RetryLater` that the handler raised of its own accord;
    one raised while handling another exception counts as that one does.

    >>> rules = Classifier(permanent=[KeyError], retryable=[lambda error: "deadlock" in str(error)])
    >>> rules(KeyError("customer")).retry, rules(TimeoutError()).retry
    (False, True)

    Raises `ConfigError` with every mistake at once.
    """

    permanent: tuple[Rule, ...]
    retryable: tuple[Rule, ...]
    _by_class: dict[type, Classified] = field(repr=False, compare=False)

    def __init__(self, *, permanent: Iterable[Rule] = (), retryable: Iterable[Rule] = ()) -> None:
        mistakes: list[str] = []
        never = _read_rules(permanent, key="permanent", mistakes=mistakes)
        again = _read_rules(retryable, key="retryable", mistakes=mistakes)
        mistakes.extend(
            f"retryable: expected other rules than in permanent, got {_name(rule)} in both"
            for rule in again
            if rule in never
        )
        if mistakes:
            raise ConfigError(mistakes)
        object.__setattr__(self, "permanent", never)
        object.__setattr__(self, "retryable", again)
        object.__setattr__(self, "_by_class", {})

    def __call__(self, error: BaseException, *, now: datetime | None = None) -> Classified:
        """What is thought of `error`. Without `now`, a delay told as a date is passed over."""
        known = self.recall(error)
        if known is not None:
            return known
        error = unwrap(error)
        if isinstance(error, GiveUp):
            return Classified(retry=False, transient=False, told=None, why="the handler gave up")
        causes = tuple(causes_of(error))
        told = next((told for cause in causes if (told := told_delay(cause, now=now)) is not None), None)
        if not isinstance(error, RetryLater):
            return self._remember(error, self._first_known(causes)._replace(told=told))
        # A handler that turns an outage into RetryLater does so while handling its exception.
        behind = [cause for cause in causes if not isinstance(cause, _NO_FAILURES)]
        return Classified(
            retry=True,
            transient=bool(behind) and self._first_known(behind).transient,
            told=told if error.delay is None else error.delay,
            why="the handler asked for it",
        )

    def recall(self, error: BaseException) -> Classified | None:
        """What is thought of every `error` of its class that stands alone, as this one does; None if it does not.

        Such an exception is mute, and was raised from nothing: there is nothing about it but its class.
        """
        try:
            known = self._by_class.get(type(error))
        except Exception:  # noqa: BLE001 - a metaclass is anybody's code
            return None
        if known is None or error.__cause__ is not None or not tells_nothing(error.__dict__):
            return None
        return known if error.__context__ is None or error.__suppress_context__ else None

    def _remember(self, error: BaseException, known: Classified) -> Classified:
        """Keep what holds for every exception of this class that stands alone; give it back."""
        if (
            len(self._by_class) < _CLASSES
            and _stands_alone(error)
            and all(isinstance(rule, type) for rule in (*self.permanent, *self.retryable))
            and (isinstance(error, _NETWORK_TYPES) or not isinstance(error, OSError | BaseExceptionGroup))
        ):
            self._by_class[type(error)] = known
        return known

    def _first_known(self, causes: Sequence[BaseException]) -> Classified:
        for cause in causes:
            known = self._named(cause) or _recognised(cause)
            if known is not None:
                return known
        return Classified(retry=True, transient=False, told=None, why="no rule names it")

    def _named(self, error: BaseException) -> Classified | None:
        if any(_says_yes(rule, error) for rule in self.permanent):
            return _permanent("a rule calls it permanent")
        if any(_says_yes(rule, error) for rule in self.retryable):
            return _transient("a rule calls it retryable")
        for kind in type(error).__mro__:
            if kind in self.permanent:
                return _permanent(f"{_name(kind)} is permanent")
            if kind in self.retryable:
                return _transient(f"{_name(kind)} is retryable")
        return None


def _stands_alone(error: BaseException) -> bool:
    """Whether there is nothing to read on it, and nothing that it was raised from."""
    return error.__cause__ is None and (error.__context__ is None or error.__suppress_context__) and is_mute(error)


def unwrap(error: BaseException) -> BaseException:
    """What a group stands for: its only member, or the first GiveUp in it; else, and if it is no group, itself.

    This is how a task group hands on what was raised in its tasks.
    """
    if not isinstance(error, BaseExceptionGroup):
        return error
    members = [found for found in _members(error) if not isinstance(found, BaseExceptionGroup)]
    if len(members) == 1:
        return members[0]
    return next((found for found in members if isinstance(found, GiveUp)), error)


def _members(group: BaseException) -> list[BaseException]:
    found = [group]
    for member in found:  # grows while it is read, so that no depth of groups is too deep
        if isinstance(member, BaseExceptionGroup):
            found.extend(member.exceptions)
    return found


def _recognised(error: BaseException) -> Classified | None:
    for code in codes_of(error):
        if code in _UNPAID_CODES or code.startswith(_UNPAID_PREFIX):
            return _permanent(f"code {code[:40]}")
    status = status_of(error)
    if status is not None:
        retry = status >= _SERVER_FAULT or status in _RETRIED_4XX
        return Classified(retry, transient=retry and status != _CONFLICT, told=None, why=f"HTTP {status}")
    if _is_network(error):
        return _transient("a network error")
    return None


def _is_network(error: BaseException) -> bool:
    if isinstance(error, _NETWORK_TYPES) or (isinstance(error, OSError) and error.errno in _NETWORK_ERRNOS):
        return True
    return any((kind.__module__.partition(".")[0], kind.__name__) in _NETWORK_NAMES for kind in type(error).__mro__)


def _permanent(why: str) -> Classified:
    return Classified(retry=False, transient=False, told=None, why=why)


def _transient(why: str) -> Classified:
    return Classified(retry=True, transient=True, told=None, why=why)


def _says_yes(rule: Rule, error: BaseException) -> bool:
    if isinstance(rule, type):
        return False
    try:
        return bool(rule(error))
    except Exception:  # noqa: BLE001 - a broken rule must not lose the exception it was asked about
        return False


def _read_rules(rules: Any, *, key: str, mistakes: list[str]) -> tuple[Rule, ...]:
    if isinstance(rules, str | bytes) or not isinstance(rules, Iterable):
        mistakes.append(f"{key}: expected a list of exception types and functions, got {rules!r}")
        return ()
    found = tuple(rules)
    mistakes.extend(
        f"{key}[{index}]: expected an exception type or a function, got {rule!r}"
        for index, rule in enumerate(found)
        if not (issubclass(rule, BaseException) if isinstance(rule, type) else callable(rule))
    )
    return found


def _name(rule: Rule) -> str:
    return getattr(rule, "__name__", repr(rule))
