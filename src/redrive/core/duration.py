"""Durations at the edge: what people write, as a `timedelta`."""

import re
from datetime import timedelta

_EXPECTED = "expected seconds, a timedelta, or text such as '30s', '5m', '1.5h', '250ms', got {!r}"

NOW = timedelta(0)
LONGEST = timedelta(days=3653)  # what is due stays far from the end of the calendar

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*")

Duration = timedelta | float | int | str


def as_duration(value: Duration) -> timedelta:
    """Return `value` as a `timedelta`; raise `ValueError` for anything that is not from zero to ten years."""
    if isinstance(value, timedelta):
        found = value
    elif isinstance(value, str):
        match = _TEXT.fullmatch(value)
        if match is None:
            raise ValueError(_EXPECTED.format(value))
        found = _from_seconds(float(match[1]) * _UNITS[match[2] or "s"], value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found = _from_seconds(value, value)
    else:
        raise ValueError(_EXPECTED.format(value))
    if found < NOW:
        raise ValueError(f"expected a duration of zero or more, got {value!r}")
    if found > LONGEST:
        raise ValueError(f"expected at most ten years, got {value!r}")
    return found


def _from_seconds(seconds: float, value: Duration) -> timedelta:
    try:
        return timedelta(seconds=seconds)
    except (OverflowError, ValueError) as error:
        raise ValueError(_EXPECTED.format(value)) from error
