"""Values as databases keep them: exact, whatever they hold."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

ESCAPED = "\ufdd0"
"""No character: a text that begins with it was written by us."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_UNSAFE = re.compile("[\x00\ud800-\udfff]")
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode
_decode = json.JSONDecoder().decode


def escaped(text: str) -> str:
    """The text as it is kept, U+0000 and lone surrogates escaped: different texts stay different."""
    if text.isascii() and "\x00" not in text:
        return text
    return ESCAPED + json.dumps(text) if _UNSAFE.search(text) or text.startswith(ESCAPED) else text


def unescaped(kept: str) -> str:
    """The text that is kept so."""
    return str(json.loads(kept[1:])) if kept.startswith(ESCAPED) else kept


def microseconds(at: datetime | None) -> int | None:
    """Whole microseconds since 1970: in order, without a zone to get wrong."""
    return None if at is None else (at - EPOCH) // _MICROSECOND


def instant(number: int) -> datetime:
    """The instant so many microseconds after 1970 began."""
    return EPOCH + timedelta(microseconds=number)


def to_json(value: Any) -> str:
    """A value as JSON in ASCII, so that no text inside can be refused."""
    return _encode(value)


def from_json(kept: str) -> Any:
    """The value that is kept so."""
    return _decode(kept)
