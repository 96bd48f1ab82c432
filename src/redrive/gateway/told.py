"""How long a provider asks to wait: `Retry-After` in all its forms, and the resets of its limits."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from redrive.core.duration import NOW
from redrive.core.evidence import told_delay

_PARTS: Final = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_NUMBER: Final = re.compile(r"\d{1,15}(\.\d{1,9})?")
_EPOCH: Final = 1_000_000_000  # no reset is told as so many seconds from now; as an instant it is of this century
_LONGEST: Final = 64
_LEFT: Final = re.compile(r"(.*ratelimit-)(?:remaining(.*)|(.*)remaining)")


class _Told(Exception):
    """Headers, in a form that the core reads."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers


def told_by(headers: Mapping[str, str], *, now: datetime) -> timedelta | None:
    """How long the headers (lower-case names) ask to wait; None if they do not, or say nonsense. Never raises.

    A date is by the server's own clock, if `Date` tells it. Without a `Retry-After`, the reset of a limit of which
    nothing remains counts; of several the latest.
    """
    server = _server_time(headers) or now
    told = told_delay(_Told(headers), now=server)
    if told is not None:
        return told
    resets = [
        wait
        for name, left in headers.items()
        if (match := _LEFT.fullmatch(name)) and left.strip() in ("0", "0.0")
        if (wait := _reset(headers, match, now=server)) is not None
    ]
    return max(resets, default=None)


def _reset(headers: Mapping[str, str], match: re.Match[str], *, now: datetime) -> timedelta | None:
    """The wait of the reset that belongs to an exhausted limit: `…remaining-tokens` and `…reset-tokens` do."""
    head, after, before = match.groups()
    name = f"{head}reset{after}" if before is None else f"{head}{before}reset"
    text = headers.get(name, "").strip()
    if not text or len(text) > _LONGEST:
        return None
    if _NUMBER.fullmatch(text):
        number = float(text)
        seconds = number - now.timestamp() if number >= _EPOCH else number
        return timedelta(seconds=min(max(seconds, 0.0), 1e9))
    parts = _PARTS.fullmatch(text)
    if parts:
        days, hours, minutes, seconds_, millis = (float(part or 0) for part in parts.groups())
        return timedelta(days=min(days, 1e6), hours=hours, minutes=minutes, seconds=seconds_, milliseconds=millis)
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return max(NOW, (instant if instant.tzinfo else instant.replace(tzinfo=UTC)) - now)


def _server_time(headers: Mapping[str, str]) -> datetime | None:
    try:
        told = parsedate_to_datetime(headers["date"][:_LONGEST])
    except (LookupError, ValueError, TypeError, OverflowError):
        return None
    return told if told.tzinfo else told.replace(tzinfo=UTC)
