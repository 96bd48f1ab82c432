"""Values as MongoDB keeps them: exact, whatever they hold.

BSON refuses lone surrogates, and some servers U+0000; its dates have milliseconds, our instants microseconds; and names
inside of what people send may be any text, those of fields may not.
"""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ESCAPED = "\ufdd0"  # no character: a text that begins with it was written by us
_UNSAFE = re.compile("[\x00\ud800-\udfff]")
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode
_decode = json.JSONDecoder().decode


def to_text(text: str) -> str:
    """The text as it is kept: different texts stay different."""
    text = str(text)  # a member of an enumeration is its value
    if text.isascii() and "\x00" not in text:
        return text
    return _ESCAPED + json.dumps(text) if _UNSAFE.search(text) or text.startswith(_ESCAPED) else text


def to_word(text: str | None) -> str | None:
    """A text that may be none."""
    return None if text is None else to_text(text)


def from_text(kept: str) -> str:
    """The text that is kept so."""
    return str(json.loads(kept[1:])) if kept.startswith(_ESCAPED) else kept


def from_word(kept: str | None) -> str | None:
    """A text that may be none."""
    return None if kept is None else from_text(kept)


def is_plain(text: str) -> bool:
    """Whether a text is kept as it is."""
    return to_text(text) == text


def to_number(at: datetime | None) -> int | None:
    """An instant as whole microseconds since 1970."""
    return None if at is None else (at - _EPOCH) // _MICROSECOND


def from_number(number: int) -> datetime:
    """The instant so many microseconds after 1970 began."""
    return _EPOCH + timedelta(microseconds=number)


def from_maybe(number: int | None) -> datetime | None:
    """An instant that may be none."""
    return None if number is None else from_number(number)


def to_json(value: Any) -> str:
    """A value as JSON in ASCII, so that no text inside can be refused."""
    return _encode(value)


def from_json(kept: str) -> Any:
    """The value that is kept so."""
    return _decode(kept)


def key_of(*names: str | int) -> str:
    """The id of a document that is named by several things."""
    return _encode(names)


def texts(values: Iterable[str]) -> list[str]:
    """Texts as they are kept."""
    return [to_text(value) for value in values]
