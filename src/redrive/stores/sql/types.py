"""Column types that keep every value exactly, on every database."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Dialect, Integer, LargeBinary, String, TypeDecorator

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ESCAPED = "\ufdd0"  # no character: a text that begins with it was written by us
_UNSAFE = re.compile("[\x00\ud800-\udfff]")
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode
_decode = json.JSONDecoder().decode

Number = BigInteger().with_variant(Integer(), "sqlite")
"""A whole number; on SQLite a primary key of this type is the row's own number."""

Bytes = LargeBinary

TEXT = String().with_variant(String(collation="C"), "postgresql")
"""Text as migrations create it: in the order of its characters, whatever language a PostgreSQL database speaks."""


class Text(TypeDecorator[str]):
    """Any text. U+0000 and lone surrogates, which databases refuse, are escaped; nothing else is touched."""

    impl = String
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[str | None], str | None]:  # noqa: ARG002 - their shape
        return escaped

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[str | None], str | None]:  # noqa: ARG002
        return _read_text


class Instant(TypeDecorator[datetime]):
    """An instant as whole microseconds since 1970: exact, in order, without a zone to get wrong."""

    impl = Number
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], int | None]:  # noqa: ARG002
        return microseconds

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[int | None], datetime | None]:  # noqa: ARG002
        return _read_instant


class Json(TypeDecorator[Any]):
    """Plain values as JSON in ASCII, so that no text inside can be refused; empty ones as nothing.

    Bytes are JSON already.
    """

    impl = LargeBinary
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], bytes | None]:  # noqa: ARG002
        return dumped

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[bytes | None], Any]:  # noqa: ARG002
        return _read_json


def escaped(text: str | None) -> str | None:
    """The text as it is kept: different texts stay different."""
    if text is None or (text.isascii() and "\x00" not in text):
        return text
    if _UNSAFE.search(text) or text.startswith(_ESCAPED):
        return _ESCAPED + json.dumps(text)
    return text


def unescaped(kept: str) -> str:
    """The text that is kept so."""
    return str(json.loads(kept[1:])) if kept.startswith(_ESCAPED) else kept


def microseconds(at: datetime | None) -> int | None:
    """Whole microseconds since 1970."""
    return None if at is None else (at - _EPOCH) // _MICROSECOND


def instant(number: int) -> datetime:
    """The instant so many microseconds after 1970 began."""
    return _EPOCH + timedelta(microseconds=number)


def dumped(value: Any) -> bytes | None:
    """A value as JSON; bytes are JSON already."""
    if not value:
        return None
    return value if isinstance(value, bytes) else _encode(value).encode()


def _read_text(kept: str | None) -> str | None:
    return unescaped(kept) if kept and kept[0] == _ESCAPED else kept


def _read_instant(number: int | None) -> datetime | None:
    return None if number is None else instant(number)


def _read_json(kept: bytes | None) -> Any:
    return None if kept is None else _decode(kept.decode())
