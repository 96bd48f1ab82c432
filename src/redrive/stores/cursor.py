"""Where the next page begins, as text that a client hands back unread."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from redrive.core.stored import Page
from redrive.stores.exact import instant, microseconds

T = TypeVar("T")
_LARGEST = 2**63 - 1


def number_of(after: str | None) -> int | None:
    """The number in a cursor, None for the first page. Raises `ValueError`."""
    if after is None:
        return None
    if after.isascii() and after.isdecimal() and (number := int(after[:20])) <= _LARGEST:
        return number
    raise ValueError(f"after: expected a cursor from an earlier page, got {after!r}")


def mark_of(after: str | None) -> tuple[datetime, str] | None:
    """The instant and the name in a cursor, None for the first page. Raises `ValueError`."""
    if after is None:
        return None
    number, _, name = after.partition(":")
    try:
        return instant(number_of(number) or 0), name
    except OverflowError:
        raise ValueError(f"after: expected a cursor from an earlier page, got {after!r}") from None


def mark(at: datetime, name: str) -> str:
    """The cursor behind this instant and name."""
    return f"{microseconds(at)}:{name}"


def page_of(rows: Sequence[T], *, limit: int, after: Callable[[T], str]) -> Page[T]:
    """A page of rows of which one more than `limit` was asked for: it tells whether there is a next page."""
    shown = rows[:limit]
    return Page(shown, after(shown[-1]) if len(rows) > limit and shown else None)
