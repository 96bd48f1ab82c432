"""How long to wait before the next attempt: a delay by its number, and the jitter that spreads a crowd."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from random import Random
from typing import ClassVar, Final

from redrive.core.duration import NOW, Duration, as_duration
from redrive.core.errors import ConfigError

LONGEST: Final = timedelta(days=365)
"""No delay may be set longer than this: what is drawn from it, up to three times as long, is still a duration."""

STEEPEST: Final = 1000


@dataclass(frozen=True, slots=True, init=False)
class Exponential:
    """`initial` after the first failed attempt, then each time `multiplier` times as long, never above `cap`.

    Raises `ConfigError` with every mistake at once.

    >>> [Exponential(1, multiplier=2, cap=30).delay(n).total_seconds() for n in (1, 2, 3, 6, 2000)]
    [1.0, 2.0, 4.0, 30.0, 30.0]
    """

    initial: timedelta
    multiplier: float
    cap: timedelta

    def __init__(self, initial: Duration = 1, *, multiplier: float = 2, cap: Duration = 30) -> None:
        mistakes: list[str] = []
        first = read_delay(initial, key="initial", mistakes=mistakes)
        last = read_delay(cap, key="cap", mistakes=mistakes)
        number = isinstance(multiplier, int | float) and not isinstance(multiplier, bool)
        if not number or not 1 <= multiplier <= STEEPEST:
            mistakes.append(f"multiplier: expected a number from 1 to {STEEPEST}, got {multiplier!r}")
        if not mistakes and last < first:
            mistakes.append(f"cap: expected at least initial ({initial!r}), got {cap!r}")
        if mistakes:
            raise ConfigError(mistakes)
        object.__setattr__(self, "initial", first)
        object.__setattr__(self, "multiplier", float(multiplier))
        object.__setattr__(self, "cap", last)

    def delay(self, n: int) -> timedelta:
        """How long to wait after failed attempt `n`, from 1; any `n` has an answer."""
        power = _from_one(n) - 1
        if not self.initial or self.multiplier == 1:
            return self.initial
        # Compared as logarithms, because 2.0 ** 1999 is more than a float can hold.
        if power * math.log(self.multiplier) >= math.log(self.cap / self.initial):
            return self.cap
        return min(self.cap, self.initial * self.multiplier**power)


@dataclass(frozen=True, slots=True, init=False)
class Table:
    """One delay per failed attempt, in order; the last one repeats.

    Raises `ConfigError` with every mistake at once.

    >>> [Table([1, "5s", "1m"]).delay(n).total_seconds() for n in (1, 2, 3, 4)]
    [1.0, 5.0, 60.0, 60.0]
    """

    cap: ClassVar[None] = None
    delays: tuple[timedelta, ...]

    def __init__(self, delays: Iterable[Duration]) -> None:
        if isinstance(delays, str | bytes) or not isinstance(delays, Iterable):
            raise ConfigError(f"delays: expected a sequence of durations, got {delays!r}")
        mistakes: list[str] = []
        found = tuple(
            read_delay(delay, key=f"delays[{index}]", mistakes=mistakes) for index, delay in enumerate(delays)
        )
        if not found:
            mistakes.append("delays: expected one duration at least, got none")
        if mistakes:
            raise ConfigError(mistakes)
        object.__setattr__(self, "delays", found)

    def delay(self, n: int) -> timedelta:
        """How long to wait after failed attempt `n`, from 1; any `n` has an answer."""
        return self.delays[min(_from_one(n), len(self.delays)) - 1]


@dataclass(frozen=True, slots=True, init=False)
class Constant:
    """The same delay after every failed attempt. Raises `ConfigError`."""

    cap: ClassVar[None] = None
    every: timedelta

    def __init__(self, every: Duration) -> None:
        mistakes: list[str] = []
        found = read_delay(every, key="every", mistakes=mistakes)
        if mistakes:
            raise ConfigError(mistakes)
        object.__setattr__(self, "every", found)

    def delay(self, n: int) -> timedelta:
        """How long to wait after failed attempt `n`, from 1; any `n` has an answer."""
        _from_one(n)
        return self.every


Backoff = Exponential | Table | Constant


class Jitter(StrEnum):
    """How a delay is spread by chance, so that what failed together does not come back together."""

    FULL = "full"  # from nothing to the whole delay: the widest spread, the lowest peak
    EQUAL = "equal"  # from half the delay to the whole
    DECORRELATED = "decorrelated"  # from the first delay to three times the previous one
    NONE = "none"  # the delay exactly


@dataclass(frozen=True, slots=True, init=False)
class Additive:
    """Jitter of a fixed size: the delay plus or minus up to `spread`. Raises `ConfigError`."""

    spread: timedelta

    def __init__(self, spread: Duration) -> None:
        mistakes: list[str] = []
        found = read_delay(spread, key="spread", mistakes=mistakes)
        if mistakes:
            raise ConfigError(mistakes)
        object.__setattr__(self, "spread", found)


AnyJitter = Jitter | Additive


def delay_range(backoff: Backoff, jitter: AnyJitter, *, n: int) -> tuple[timedelta, timedelta]:
    """The shortest and the longest delay that may be drawn after failed attempt `n`.

    Never negative; never above the cap where the backoff has one (`Exponential`). The range is cut to these
    limits before anything is drawn, so that no crowd gathers at a limit.

    Decorrelated jitter is known as "from the first delay to three times the one drawn before". Here it is
    three times the delay that the backoff has for the attempt before: nothing needs to be remembered between
    attempts, and the draw depends on nothing but `n` and the random passed in.
    """
    delay = backoff.delay(n)
    if isinstance(jitter, Additive):
        low, high = delay - jitter.spread, delay + jitter.spread
    elif jitter is Jitter.FULL:
        low, high = NOW, delay
    elif jitter is Jitter.EQUAL:
        low, high = delay / 2, delay
    elif jitter is Jitter.DECORRELATED:
        low, high = backoff.delay(1), 3 * backoff.delay(max(n - 1, 1))
    else:
        low, high = delay, delay
    if backoff.cap is not None:
        high = min(high, backoff.cap)
    return max(NOW, min(low, high)), high


def draw_delay(
    backoff: Backoff, jitter: AnyJitter, *, n: int, random: Random, told: timedelta | None = None
) -> timedelta:
    """How long to wait after failed attempt `n`: one draw from `delay_range`.

    A `told` delay is a floor, which the backoff's cap does not shorten. Jitter comes on top of it, because
    everybody was told the same: as wide as the own range, or a quarter of `told` if that is wider.
    """
    share = random.random()
    if jitter is Jitter.NONE and told is None:
        return backoff.delay(n)
    low, high = delay_range(backoff, jitter, n=n)
    if told is not None and told > low:
        width = NOW if jitter is Jitter.NONE else max(high - low, told / 4)
        low, high = told, told + width
    return low + (high - low) * share


def read_delay(value: Duration, *, key: str, mistakes: list[str]) -> timedelta:
    """A setting as a `timedelta` of at most `LONGEST`; what is wrong with it is added to `mistakes`."""
    try:
        found = as_duration(value)
    except ValueError as error:
        mistakes.append(f"{key}: {error}")
        return NOW
    if found > LONGEST:
        mistakes.append(f"{key}: expected at most {LONGEST.days} days, got {value!r}")
    return found


def _from_one(n: int) -> int:
    if n < 1:
        raise ValueError(f"attempts are numbered from 1, got {n}")
    return n
