"""Values as databases keep them: exact, whatever they hold."""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import repeat
from operator import floordiv, sub
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


def all_escaped(texts: Sequence[str | None]) -> Iterable[str | None]:
    """The same of many, that may be none: as they are, if nothing in them has to be escaped."""
    together = "".join(filter(None, texts))
    if together.isascii() and "\x00" not in together:
        return texts
    return [None if text is None else escaped(text) for text in texts]


def unescaped(kept: str) -> str:
    """The text that is kept so."""
    return str(json.loads(kept[1:])) if kept.startswith(ESCAPED) else kept


def microseconds(at: datetime | None) -> int | None:
    """Whole microseconds since 1970: in order, without a zone to get wrong."""
    return None if at is None else (at - EPOCH) // _MICROSECOND


def all_microseconds(instants: Sequence[datetime | None]) -> Iterable[int | None]:
    """The same of many: without a call of ours for each, unless one of them is none."""
    try:
        return [*map(floordiv, map(sub, instants, repeat(EPOCH)), repeat(_MICROSECOND))]
    except TypeError:
        return map(microseconds, instants)


def instant(number: int) -> datetime:
    """The instant so many microseconds after 1970 began."""
    return EPOCH + timedelta(microseconds=number)


def to_json(value: Any) -> str:
    """A value as JSON in ASCII, so that no text inside can be refused."""
    return _encode(value)


def from_json(kept: str) -> Any:
    """The value that is kept so."""
    return _decode(kept)
