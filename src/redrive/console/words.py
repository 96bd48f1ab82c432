"""Facts as people read them: how long ago, how much, how large."""

from datetime import UTC, datetime, timedelta

from redrive.core.stored import Count

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_SIZES = ("bytes", "kB", "MB", "GB")
_THOUSAND = 1000


def span(length: timedelta) -> str:
    """A length of time in its largest unit, rounded down.

    >>> span(timedelta(minutes=90))
    '1h'
    """
    seconds = int(length.total_seconds())
    return next((f"{seconds // size}{unit}" for unit, size in _UNITS if seconds >= size), "0s")


def ago(at: datetime, now: datetime) -> str:
    """How long before now an instant was, or how long after it will be."""
    if at > now + timedelta(seconds=1):
        return f"in {span(at - now)}"
    return "now" if now - at < timedelta(seconds=1) else f"{span(now - at)} ago"


def exact(at: datetime) -> str:
    """An instant to the second, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def number(value: int) -> str:
    """A count with its thousands apart."""
    return f"{value:,}"


def counted(count: Count) -> str:
    """A count that may be more."""
    return f"{count.number:,}{'+' if count.capped else ''}"


def size(length: int) -> str:
    """So many bytes.

    >>> size(1536)
    '1.5 kB'
    """
    value, unit = float(length), _SIZES[0]
    for unit in _SIZES:
        if value < _THOUSAND or unit == _SIZES[-1]:
            break
        value /= _THOUSAND
    return f"{value:.0f} {unit}" if unit == _SIZES[0] else f"{value:.1f} {unit}"


def several(value: int, noun: str) -> str:
    """A count and what is counted.

    >>> several(1, "letter"), several(2000, "letter")
    ('1 letter', '2,000 letters')
    """
    return f"{value:,} {noun}{'' if value == 1 else 's'}"
