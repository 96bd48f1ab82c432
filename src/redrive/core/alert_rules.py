"""When somebody is told: the rules about incidents and queues, and their limits."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from redrive.core.duration import NOW, as_duration

_PACE: Final = re.compile(r"\s*(\d{1,9})\s+in\s+(\S+)\s*")
_UNITS: Final = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


@dataclass(frozen=True, slots=True)
class Pace:
    """So many letters in so long a time.

    >>> str(Pace.of("10 in 5m"))
    '10 in 5m'
    """

    letters: int
    window: timedelta

    @classmethod
    def of(cls, text: str) -> "Pace":
        """As people write it. Raises `ValueError`."""
        match = _PACE.fullmatch(text)
        window = NOW if match is None else as_duration(match[2])
        if match is None or not int(match[1]) or window < _SHORTEST:
            raise ValueError(text)
        return cls(int(match[1]), window)

    def __str__(self) -> str:
        return f"{self.letters} in {span(self.window)}"


_SHORTEST: Final = timedelta(minutes=1)  # letters are counted twice a minute


def span(length: timedelta) -> str:
    """A length of time in the greatest unit that says it exactly.

    >>> span(timedelta(minutes=90)), span(timedelta(days=1))
    ('90m', '1d')
    """
    seconds = round(length.total_seconds())
    return next(f"{seconds // size}{unit}" for unit, size in _UNITS if seconds % size == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRules:
    """The rules; None is one that is off. All but those about incidents are about each queue apart.

    `growth` and `threshold`: more letters than that died in that time. `size`: more letters than that are open.
    `age`: the oldest open letter died longer ago than that. A parked letter is open too.
    """

    new_incident: bool = True
    relapse: bool = True
    growth: Pace | None = Pace(10, timedelta(minutes=5))
    threshold: Pace | None = Pace(100, timedelta(hours=1))
    size: int | None = 100
    age: timedelta | None = timedelta(days=1)
