"""Bytes as JSON can say them: a payload as text, JSON or hex, headers as pairs."""

import json
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from redrive.core.errors import DeadLetterError
from redrive.core.message import Headers
from redrive.core.wire.plain import from_base64, to_base64

View = Literal["text", "json", "hex"]
DEEPEST = 100  # levels of JSON that an answer or an edit holds: what reads it must not fall over


class Seen(NamedTuple):
    """A payload as it is shown, and in which encoding; None for plain text, and for nothing at all."""

    value: Any
    encoding: Literal["base64", "hex", "json"] | None = None


@dataclass(frozen=True, slots=True)
class Base64:
    """Bytes that are no text."""

    base64: str


Header = tuple[str, str | Base64]
"""A header's name, and its value as text, or in base64 where it is none."""


def seen(payload: bytes | None, view: View = "text") -> Seen:
    """A payload as somebody wants to see it. Raises `DeadLetterError` if it is not JSON and that was asked for."""
    if payload is None:
        return Seen(None)
    if view == "hex":
        return Seen(payload.hex(), "hex")
    if view == "json":
        return Seen(_parsed(payload), "json")
    try:
        return Seen(payload.decode())
    except UnicodeDecodeError:
        return Seen(to_base64(payload), "base64")


def headers_of(headers: Headers) -> list[Header]:
    """Headers as an answer holds them."""
    return [(name, _text_or_base64(value)) for name, value in headers]


def to_headers(given: list[Header]) -> Headers:
    """Headers from a request. Raises `ValueError` for base64 that is none."""
    return tuple(
        (name, value.encode() if isinstance(value, str) else from_base64(value.base64)) for name, value in given
    )


def shallow(value: Any) -> Any:
    """The value, or in its place what is wrong with it, if it is nested too deeply to be said."""
    return value if is_shallow(value) else "(nested too deeply)"


def _parsed(payload: bytes) -> Any:
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise DeadLetterError(f"the payload cannot be shown as JSON: {error}") from error
    if not is_shallow(value):
        raise DeadLetterError("the payload cannot be shown as JSON: it is nested too deeply")
    return value


def is_shallow(value: Any) -> bool:
    """Whether it is nested so little that an answer can hold it."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return True
    return False


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value.values()]
    return value if isinstance(value, list) else []


def _text_or_base64(value: bytes) -> str | Base64:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Base64(to_base64(value))
