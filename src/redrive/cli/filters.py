"""Which letters a command is about: the flags that make a query, and those that choose what to act on."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from cyclopts import Parameter

from redrive.core.duration import as_duration
from redrive.core.errors import ConfigError
from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.core.reason import Reason

AnyState = Literal["open", "redriving", "resolved", "discarded", "parked", "all"]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Filter:
    """The flags that choose letters: all that are given must hold."""

    incident: Annotated[str | None, Parameter(help="Letters of this incident.")] = None
    queue: Annotated[str | None, Parameter(help="Letters of this queue.")] = None
    state: Annotated[tuple[AnyState, ...], Parameter(help="Letters in this state, or all; may be given often.")] = ()
    reason: Annotated[Reason | None, Parameter(help="Why they were given up.")] = None
    error_type: Annotated[str | None, Parameter(help="The type of their last error, in full.")] = None
    error_code: Annotated[str | None, Parameter(help="The code of their last error.")] = None
    kind: Annotated[str | None, Parameter(help="What they are of: message, or llm for a request to a model.")] = None
    user: Annotated[str | None, Parameter(help="The user they are about.")] = None
    tenant: Annotated[str | None, Parameter(help="The tenant they are about.")] = None
    app_version: Annotated[str | None, Parameter(help="The app's version that they died on.")] = None
    text: Annotated[str | None, Parameter(help="A text in id, error or payload, whatever the case.")] = None
    since: Annotated[str | None, Parameter(help="Failed since: 2h (ago), or 2026-01-31T08:00Z.")] = None
    until: Annotated[str | None, Parameter(help="Failed before: 2h (ago), or 2026-01-31T08:00Z.")] = None

    def query(self, *, now: datetime, states: tuple[LetterState, ...] = ()) -> Query:
        """The query; `states` are meant where no flag says any. Raises `ConfigError` with every mistake at once."""
        mistakes: list[str] = []
        from_at = _instant("--since", self.since, now, mistakes)
        to_at = _instant("--until", self.until, now, mistakes)
        if mistakes:
            raise ConfigError(mistakes)
        return Query(
            states=states if not self.state else self._states(),
            reason=self.reason,
            queue=self.queue,
            error_type=self.error_type,
            error_code=self.error_code,
            fingerprint=self.incident,
            kind=self.kind,
            user_id=self.user,
            tenant_id=self.tenant,
            app_version=self.app_version,
            from_at=from_at,
            to_at=to_at,
            text=self.text,
        )

    @property
    def any_state(self) -> bool:
        """Whether letters are asked for whatever their state."""
        return "all" in self.state

    def _states(self) -> tuple[LetterState, ...]:
        return () if self.any_state else tuple(map(LetterState, self.state))


EVERY = Filter()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Choice:
    """How sure a person is about many letters."""

    everything: Annotated[bool, Parameter(name="--all", help="No filter: every letter there is now.")] = False
    yes: Annotated[bool, Parameter(help="Do it; without, it is only shown.")] = False


UNSURE = Choice()


def refuse_confusion(letter_ids: tuple[str, ...], chosen: Filter, choice: Choice) -> None:
    """Raise `ConfigError` unless ids, a filter or --all are given, and only one of them."""
    ways = [bool(letter_ids), chosen != EVERY, choice.everything]
    if sum(ways) != 1:
        said = "not several of them" if any(ways) else "got none"
        raise ConfigError(f"expected letters, a filter such as --incident, or --all; {said}")


def as_length(flag: str, text: str) -> timedelta:
    """A length of time from a flag. Raises `ConfigError`."""
    try:
        return as_duration(text)
    except ValueError as error:
        raise ConfigError(f"{flag}: {error}") from error


def as_rate(flag: str, text: str | None) -> float | None:
    """Messages per second from `200/s`, `90/m`, `5000/h` or a plain number. Raises `ConfigError`."""
    if text is None:
        return None
    number, _, unit = text.replace(" ", "").partition("/")
    try:
        rate = float(number) / _SECONDS[unit]
    except (ValueError, KeyError):
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise ConfigError(f"{flag}: expected messages per second such as 200/s, or 90/m, 5000/h, got {text!r}")
    return rate


def as_steps(flag: str, text: str | None) -> tuple[int, ...]:
    """The sizes of canary steps from `1,5,25`. Raises `ConfigError`."""
    if text is None:
        return ()
    try:
        steps = tuple(int(part) for part in text.split(","))
    except ValueError:
        steps = ()
    if not steps or min(steps) < 1:
        raise ConfigError(f"{flag}: expected the sizes of the first steps, such as 1,5,25, got {text!r}")
    return steps


_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def _instant(flag: str, text: str | None, now: datetime, mistakes: list[str]) -> datetime | None:
    if text is None:
        return None
    try:
        return now - as_duration(text)
    except (ValueError, OverflowError):
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        mistakes.append(f"{flag}: expected how long ago, such as 2h, or 2026-01-31T08:00Z, got {text!r}")
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
