"""Column types that keep every value exactly, on every database."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Dialect, Integer, LargeBinary, String, TypeDecorator

from redrive.stores.exact import ESCAPED, escaped, from_json, instant, microseconds, to_json, unescaped

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
        return written

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[str | None], str | None]:  # noqa: ARG002
        return read_text


class Instant(TypeDecorator[datetime]):
    """An instant as whole microseconds since 1970: exact, in order, without a zone to get wrong."""

    impl = Number
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], int | None]:  # noqa: ARG002
        return microseconds

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[int | None], datetime | None]:  # noqa: ARG002
        return read_instant


class Json(TypeDecorator[Any]):
    """Plain values as JSON in ASCII, so that no text inside can be refused; empty ones as nothing.

    Bytes are JSON already.
    """

    impl = LargeBinary
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], bytes | None]:  # noqa: ARG002
        return dumped

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[bytes | None], Any]:  # noqa: ARG002
        return read_json


def dumped(value: Any) -> bytes | None:
    """A value as JSON; bytes are JSON already."""
    if not value:
        return None
    return value if isinstance(value, bytes) else to_json(value).encode()


def written(text: str | None) -> str | None:
    """A text that may be none, as it is kept."""
    return None if text is None else escaped(text)


def read_text(kept: str | None) -> str | None:
    """A text that may be none, as it was before it was kept."""
    return unescaped(kept) if kept and kept[0] == ESCAPED else kept


def read_instant(number: int | None) -> datetime | None:
    """An instant that may be none."""
    return None if number is None else instant(number)


def read_json(kept: bytes | None) -> Any:
    """A value from its JSON."""
    return None if kept is None else from_json(kept.decode())
