"""Column types that keep every value exactly, on every database."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Dialect, Integer, LargeBinary, String, TypeDecorator

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ESCAPED = "\ufdd0"  # no character: a text that begins with it was written by us
_UNSAFE = re.compile("[\x00\ud800-\udfff]")
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode

Number = BigInteger().with_variant(Integer(), "sqlite")
"""A whole number; on SQLite a primary key of this type is the row's own number."""

Bytes = LargeBinary


class Text(TypeDecorator[str]):
    """Any text. U+0000 and lone surrogates, which databases refuse, are escaped; nothing else is touched."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - their shape
        return escaped(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - their shape
        if value is None or not value.startswith(_ESCAPED):
            return value
        return str(json.loads(value[1:]))


class Instant(TypeDecorator[datetime]):
    """An instant as whole microseconds since 1970: exact, in order, without a zone to get wrong."""

    impl = Number
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002 - their shape
        return microseconds(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else instant(value)


class Json(TypeDecorator[Any]):
    """Plain values as JSON in ASCII, so that no text inside can be refused; empty ones as nothing."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> bytes | None:  # noqa: ARG002 - their shape
        return dumped(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> Any:  # noqa: ARG002 - their shape
        return None if value is None else json.loads(value)


def escaped(text: str | None) -> str | None:
    """The text as it is kept: different texts stay different."""
    if text is None or (text.isascii() and "\x00" not in text):
        return text
    if _UNSAFE.search(text) or text.startswith(_ESCAPED):
        return _ESCAPED + json.dumps(text)
    return text


def microseconds(at: datetime | None) -> int | None:
    """Whole microseconds since 1970."""
    return None if at is None else (at - _EPOCH) // _MICROSECOND


def instant(number: int) -> datetime:
    """The instant so many microseconds after 1970 began."""
    return _EPOCH + timedelta(microseconds=number)


def dumped(value: Any) -> bytes | None:
    """A value as JSON."""
    return _encode(value).encode() if value else None
