"""What a foreign exception carries: its causes, an HTTP status, error codes, the delay a server asked for.

All of it is read by name and shape, so that no client library needs to be imported, and nothing here raises:
a strange exception has less to say, that is all.
"""

import functools
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from redrive.core.duration import NOW

CAUSES_READ: Final = 50
"""How many exceptions of a chain are looked at; a handler's own retry loop can make it very long."""

_STATUS_NAMES: Final = ("status", "status_code", "http_status", "code")
_CODE_NAMES: Final = ("code", "type", "error_code", "Code")
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")
_HTTP_FAULTS: Final = range(400, 600)
_TEXT_READ: Final = 64  # no number and no date of a header is longer

_READ: Final = frozenset({*_STATUS_NAMES, *_CODE_NAMES, "response", "body", "headers", "retry_after"})
tells_nothing: Final = _READ.isdisjoint
"""Whether none of these names is one that is read here."""
_TELLING: Final = _READ | {"__getattr__", "__getattribute__"}


def is_mute(error: BaseException) -> bool:
    """Whether an exception has no name that is read here, and so no status, no code and no delay to tell.

    Nearly all are, and asking costs a tenth of looking everywhere. A class is looked at once, when it is first seen;
    what an exception has of its own, each time.
    """
    kind: type = type(error)
    try:
        return _is_mute_kind(kind) and tells_nothing(error.__dict__)
    except Exception:  # noqa: BLE001 - a metaclass is anybody's code
        return False


@functools.lru_cache(maxsize=1024)
def _is_mute_kind(kind: type) -> bool:
    """Whether no class along the line has such a name, or a way of its own to answer for names it does not have."""
    return all(_TELLING.isdisjoint(vars(base)) for base in kind.__mro__ if base not in (BaseException, object))


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """The exception itself, then what it was raised from, outermost first, each once.

    Follows `__cause__`, or `__context__` unless it was suppressed, and the members of exception groups.
    """
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting and len(seen) < CAUSES_READ:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        if found.__cause__ is not None:
            waiting.append(found.__cause__)
        elif found.__context__ is not None and not found.__suppress_context__:
            waiting.append(found.__context__)
        if isinstance(found, BaseExceptionGroup):
            waiting.extend(reversed(found.exceptions))


def status_of(error: BaseException) -> int | None:
    """The HTTP status of 400 to 599 that this exception carries, on itself or on its response."""
    if is_mute(error):
        return None
    response = _peek(error, "response")
    for place, names in (
        (error, _STATUS_NAMES),
        (response, _STATUS_NAMES),
        (_peek(response, "ResponseMetadata"), ("HTTPStatusCode",)),
    ):
        for name in names if place is not None else ():
            value = _peek(place, name)
            if isinstance(value, int) and value in _HTTP_FAULTS:
                return int(value)
    return None


def codes_of(error: BaseException) -> Iterator[str]:
    """The error codes, as text, that this exception carries on itself or in a decoded body."""
    if is_mute(error):
        return
    body = _peek(error, "body")
    for place in (error, body, _peek(body, "error"), _peek(_peek(error, "response"), "Error")):
        for name in _CODE_NAMES if place is not None else ():
            value = _peek(place, name)
            if isinstance(value, str):
                yield value


def told_delay(error: BaseException, *, now: datetime | None = None) -> timedelta | None:
    """How long this exception asks to wait: its `retry_after`, or the headers of its response.

    Seconds, whole or not, milliseconds (`retry-after-ms`) and HTTP dates are understood; a date needs `now`,
    and one that has passed means no wait. Junk, infinite and negative numbers mean that nothing was told.
    """
    if is_mute(error):
        return None
    response = _peek(error, "response")
    told = _as_delay(_peek(error, "retry_after"), now=now)
    for headers in (
        _peek(error, "headers"),
        _peek(response, "headers"),
        _peek(_peek(response, "ResponseMetadata"), "HTTPHeaders"),
    ):
        if told is None and headers is not None:
            told = _told_by_headers(headers, now=now)
    return told


def _told_by_headers(headers: Any, *, now: datetime | None) -> timedelta | None:
    found = _retry_headers(headers)
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        milliseconds = _as_number(found.get(name))
        if milliseconds is not None:
            return _seconds(milliseconds / 1000)
    return _as_delay(found.get("retry-after"), now=now)


def _retry_headers(headers: Any) -> dict[str, str]:
    """The headers about retrying by lower-case name, from a mapping or from pairs, of text or of bytes."""
    found: dict[str, str] = {}
    try:
        items = headers.items() if hasattr(headers, "items") else headers
        for name, value in items:
            lower = _as_text(name).lower()
            if "retry-after" in lower:
                found.setdefault(lower, _as_text(value))
    except Exception:  # noqa: BLE001 - a foreign object of any kind; it has nothing to tell
        return found
    return found


def _as_delay(value: Any, *, now: datetime | None) -> timedelta | None:
    if isinstance(value, timedelta):
        return value if value >= NOW else None
    number = _as_number(value)
    if number is not None:
        return _seconds(number)
    moment = value if isinstance(value, datetime) else _as_date(value)
    if moment is None or now is None:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(NOW, moment - now)


def _as_number(value: Any) -> float | None:
    """A number of zero or more; None for anything else, infinity and NaN included."""
    if isinstance(value, str | bytes) and len(value) <= _TEXT_READ:
        text = _as_text(value).strip()
        return float(text) if _NUMBER.fullmatch(text) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        return None
    return float(min(value, 1e300))


def _as_date(value: Any) -> datetime | None:
    if not isinstance(value, str | bytes) or len(value) > _TEXT_READ:
        return None
    try:
        return parsedate_to_datetime(_as_text(value))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _seconds(number: float) -> timedelta:
    try:
        return timedelta(seconds=number)
    except OverflowError:
        return timedelta.max


def _as_text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _peek(place: Any, name: str) -> Any:
    """An attribute, or a key of a mapping; None if there is none or if looking at it raises."""
    if place is None:
        return None
    try:
        # An exception is no mapping: asking costs more than all the rest.
        if not isinstance(place, BaseException) and isinstance(place, Mapping):
            return place.get(name)
        return getattr(place, name, None)
    except Exception:  # noqa: BLE001 - a property of a foreign exception may raise anything
        return None
