"""Kinds of values: what a key expects, read from TOML as it is, or from the text of a variable."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from redrive.core.alert_rules import Pace
from redrive.core.duration import as_duration

_SIZE = re.compile(r"\s*(\d+)\s*(B|kB|KB|MB|GB)?\s*")
_UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


@dataclass(frozen=True, slots=True)
class Kind:
    """What a value must be. `check` gives the value as it is used, or raises `ValueError` or `TypeError`.

    `parse` makes of a variable's text what TOML would have held. One that is `secret` is not repeated in a mistake.
    """

    expected: str
    check: Callable[[Any], Any]
    parse: Callable[[str], Any] = str
    secret: bool = False

    def read(self, value: Any, *, text: bool) -> Any:
        """The value as it is used. Raises `ValueError` that says what was expected."""
        try:
            return self.check(self.parse(value) if text else value)
        except (ValueError, TypeError, KeyError) as error:
            shown = repr(value) if "@" not in str(value) else "a text with a password in it and no ://"
            shown = "something else, which is not shown" if self.secret else shown
            raise ValueError(f"expected {self.expected}, got {shown}") from error


def one_of(*words: str) -> Kind:
    """One of these words."""

    def check(value: Any) -> str:
        if value not in words:
            raise ValueError(value)
        return str(value)

    return Kind(f"one of {', '.join(words)}", check)


def url(example: str) -> Kind:
    """A URL."""
    return Kind(f"a URL such as {example}", lambda value: _text_with("://", value))


def url_of(field: str, example: str) -> Kind:
    """A URL of a page about something, with a place in it for what that is called."""

    def check(value: Any) -> str:
        if not _text_with(f"{{{field}}}", value).startswith(("https://", "http://")):
            raise ValueError(value)
        return str(value)

    return Kind(f"a URL with {{{field}}} in it, such as {example}", check)


def urls(example: str, *, secret: bool = False) -> Kind:
    """One URL, or a list of them, each once."""

    def check(value: Any) -> tuple[str, ...]:
        names = _names([value] if isinstance(value, str) else value)
        return tuple(_text_with("://", name) for name in names)

    return Kind(f"URLs such as {example}, each once", check, _listed, secret)


def broker(example: str) -> Kind:
    """A URL, or the name of a broker: which names there are is not known yet."""
    return Kind(url(example).expected, _text)


def whole(smallest: int, largest: int) -> Kind:
    """A whole number within bounds."""

    def check(value: Any) -> int:
        if type(value) is not int or not smallest <= value <= largest:
            raise ValueError(value)
        return value

    return Kind(f"a whole number from {smallest} to {largest}", check, int)


def _text(value: Any) -> str:
    return _text_with("", value)


def _text_with(part: str, value: Any) -> str:
    if not isinstance(value, str) or not value or part not in value:
        raise ValueError(value)
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or len(set(value)) != len(value):
        raise ValueError(value)
    return tuple(_text(name) for name in value)


def _dlqs(value: Any) -> dict[str, str | None]:
    if isinstance(value, dict):
        return {_text(name): _text(queue) for name, queue in value.items()}
    found: dict[str, str | None] = {}
    for text in _names(value):
        name, equals, queue = text.rpartition("=")
        found[_text(name if equals else text)] = _text(queue) if equals else None
    return found


def _labels(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        value = dict(text.split("=", 1) for text in _names(value))
    found = {_text(name): _text(text) for name, text in value.items()}
    if not all(_LABEL.fullmatch(name) for name in found):
        raise ValueError(value)
    return found


def _listed(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]


def _size(value: Any) -> int:
    if isinstance(value, str) and (match := _SIZE.fullmatch(value)):
        value = int(match[1]) * _UNITS[match[2] or "B"]
    if type(value) is not int or value < 1:
        raise ValueError(value)
    return value


def _rate(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(value)
    return float(value)


OFF = "off"


def or_off(kind: Kind, word: str = OFF) -> Kind:
    """A value of this kind, or a word for none."""

    def check(value: Any) -> Any:
        return None if value == word else kind.check(value)

    def parse(text: str) -> Any:
        return text if text == word else kind.parse(text)

    return Kind(f'{kind.expected}, or "{word}"', check, parse)


def _pace(value: Any) -> Pace:
    return Pace.of(_text(value))


def _lasting(value: Any) -> timedelta:
    found = as_duration(value)
    if found < timedelta(minutes=1):
        raise ValueError(value)
    return found


TEXT = Kind("a text that is not empty", _text)
FLAG = Kind("true or false", _flag, lambda text: _WORDS[text.lower()])
NAMES = Kind("a list of names, each once", _names, _listed)
DLQS = Kind('a list of DLQs such as "legacy-dlq" or "legacy-dlq=orders", each once', _dlqs, _listed)
LABELS = Kind('labels such as "severity=critical", each once', _labels, _listed)
SIZE = Kind('a size such as "8MB", or bytes', _size, lambda text: int(text) if text.isdecimal() else text)
RATE = Kind("a number of requests per second above 0", _rate, float)
DURATION = Kind('a length of time such as "90d" or "12h"', as_duration)
LASTING = Kind('a length of time of a minute or more such as "4h"', _lasting)
PACE = Kind('letters in a time of a minute or more such as "10 in 5m"', _pace)
