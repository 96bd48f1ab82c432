"""JSON text and plain values, as strangers write them: read leniently, never trusted."""

import base64
import binascii
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

LARGEST = 2**31 - 1
"""The largest number of things that is believed."""
_LATEST_SECOND = 1e10  # the year 2286; a larger number counts in milliseconds or less
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def dump(value: Any) -> bytes:
    """A value as compact JSON in UTF-8; in ASCII if it holds what UTF-8 cannot say."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), default=str).encode()


def load_object(raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`. Raises `ValueError` for anything else, however it is broken."""
    try:
        value = json.loads(raw.decode())
    except RecursionError as error:
        raise ValueError("expected a JSON object, got one nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {type(value).__name__}")
    return value


class Member(NamedTuple):
    """One name and value of a JSON object, by their place in its text."""

    name: str
    name_at: int
    value_at: int
    end: int


def members(text: str) -> Iterator[Member]:
    """The members of the JSON object in `text`, which is known to hold one: so that a part keeps its exact text."""
    at = _after_space(text, text.index("{") + 1)
    while text[at] != "}":
        name, end = _DECODER.raw_decode(text, at)
        value_at = _after_space(text, _after_space(text, end) + 1)
        _, end = _DECODER.raw_decode(text, value_at)
        yield Member(name, at, value_at, end)
        at = _after_space(text, end)
        if text[at] == ",":
            at = _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def as_text(value: Any) -> str:
    """A value as text; nothing is an empty one."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dump(value).decode()


def as_word(value: Any) -> str | None:
    """A value as text, or None for nothing and for an empty one."""
    return as_text(value) or None


def as_count(value: Any) -> int:
    """A value as a number of things; 0 for what is none."""
    if type(value) is int and 0 <= value <= LARGEST:
        return value
    try:
        return max(0, min(int(value), LARGEST))
    except (TypeError, ValueError, OverflowError):
        return 0


def as_instant(value: Any) -> datetime | None:
    """A value as an instant: ISO 8601 (UTC if it names no zone), or seconds, milliseconds … since 1970."""
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, str) and not value.isdecimal():
            found = datetime.fromisoformat(value)
            if found.tzinfo is UTC:
                return found
            return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        seconds = float(value)
        while _LATEST_SECOND < seconds < float("inf"):
            seconds /= 1000
        return datetime.fromtimestamp(seconds, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def as_millis(instant: datetime) -> int:
    """Whole milliseconds since 1970, as the forms that others began have it."""
    return (instant - _EPOCH) // timedelta(milliseconds=1)


def to_base64(data: bytes) -> str:
    """Bytes as base64 text."""
    return base64.b64encode(data).decode()


def from_base64(text: Any) -> bytes:
    """Bytes from base64 text. Raises `ValueError`."""
    try:
        return base64.b64decode(as_text(text).encode(), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError(f"expected base64: {error}") from error
