"""The delays that can be kept: a hold queue has one time to live for all that is in it."""

from datetime import timedelta
from typing import Final

_SECONDS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)
_HOURS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)
_DAYS: Final = (1, 2, 3, 4, 5, 7)

GRID: Final[tuple[timedelta, ...]] = (
    *(timedelta(milliseconds=step) for step in (100, 200, 300, 500, 750)),
    *(timedelta(seconds=step) for step in _SECONDS),
    *(timedelta(minutes=step) for step in _SECONDS),
    *(timedelta(hours=step) for step in _HOURS),
    *(timedelta(days=step) for step in _DAYS),
)
LONGEST: Final = GRID[-1]


def rounded(delay: timedelta) -> timedelta:
    """The shortest delay of the grid that is not too short; one beyond the grid is kept in several steps, as it is."""
    return next((step for step in GRID if step >= delay), delay)


def step_of(delay: timedelta) -> timedelta:
    """The hold queue for what has so long to wait: the longest one for what has longer to wait than any."""
    return min(rounded(delay), LONGEST)


def milliseconds(step: timedelta) -> int:
    """A step as the server counts it."""
    return round(step / timedelta(milliseconds=1))
