"""Values as MongoDB keeps them: exact, whatever they hold.

BSON refuses lone surrogates, and some servers U+0000; its dates have milliseconds, our instants microseconds; and names
inside of what people send may be any text, those of fields may not.
"""

from collections.abc import Iterable
from datetime import datetime

from redrive.stores.exact import escaped, instant, to_json, unescaped


def to_text(text: str) -> str:
    """The text as it is kept: different texts stay different."""
    return escaped(str(text))  # a member of an enumeration is its value


def to_word(text: str | None) -> str | None:
    """A text that may be none."""
    return None if text is None else to_text(text)


def from_word(kept: str | None) -> str | None:
    """A text that may be none."""
    return None if kept is None else unescaped(kept)


def is_plain(text: str) -> bool:
    """Whether a text is kept as it is."""
    return to_text(text) == text


def from_maybe(number: int | None) -> datetime | None:
    """An instant that may be none."""
    return None if number is None else instant(number)


def key_of(*names: str | int) -> str:
    """The id of a document that is named by several things."""
    return to_json(names)


def texts(values: Iterable[str]) -> list[str]:
    """Texts as they are kept."""
    return [to_text(value) for value in values]
