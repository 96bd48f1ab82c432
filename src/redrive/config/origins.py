"""Where each value comes from, for people: every key, its value without secrets, and who said so."""

import tomllib
from collections.abc import Iterator
from typing import Any, NamedTuple

from redrive.config.brokers import said_of
from redrive.config.keys import BROKER_KEYS, KEYS
from redrive.config.loading import Reading
from redrive.config.settings import Settings
from redrive.config.sources import SettingsFile
from redrive.core.alert_rules import Pace
from redrive.core.url import mask_path, mask_url

DEFAULT = "default"


class Shown(NamedTuple):
    """One key as it may be shown. `origin` is `default`, a file with its line, a variable or a flag."""

    key: str
    value: Any
    origin: str


def shown(reading: Reading) -> list[Shown]:
    """Every key that there is, with the value that holds. Passwords in URLs are masked."""
    return [Shown(key, _masked(key, value), _origin(key, reading)) for key, value in _values(reading)]


def _values(reading: Reading) -> Iterator[tuple[str, Any]]:
    settings = reading.settings
    several = any(broker.name for broker in settings.brokers)
    for key in KEYS:
        head, _, name = key.partition(".")
        if head == "kafka":
            part, _, word = name.partition(".")
            yield key, getattr(getattr(settings.kafka, part), word)
        elif head in ("service", "alerts"):
            yield key, getattr(getattr(settings, head), name)
        elif head not in ("broker", "collect"):
            yield key, getattr(settings, key.replace(".", "_"))
        elif not several:
            yield key, getattr(settings.brokers[0], name or "url")
    if several:
        yield from _tables(settings)
    for number, rule in enumerate(settings.retention, 1):
        yield from ((f"retention[{number}].{name}", getattr(rule, name)) for name in rule.__slots__)


def _tables(settings: Settings) -> Iterator[tuple[str, Any]]:
    for broker in settings.brokers:
        yield from ((f"brokers.{broker.name}.{word}", getattr(broker, word)) for word in BROKER_KEYS)


def _origin(key: str, reading: Reading) -> str:
    head, _, rest = key.partition(".")
    said = reading.said.get(key)
    if head == "brokers":
        name, _, word = rest.partition(".")
        said = said_of(name, word, reading.said)
    elif head.startswith("retention"):
        return _in_file(key, reading.file)
    if said is None:
        return DEFAULT
    return _in_file(said.key, reading.file) if said.source == "file" else said.where


def _in_file(key: str, file: SettingsFile) -> str:
    line = line_of(key, file.text)
    return f"{file.path}:{line}" if line else DEFAULT


def line_of(key: str, text: str) -> int | None:
    """The line on which a key stands in a TOML text: where the first of its statements that brings the key begins."""
    lines = text.split("\n")
    whole = 0  # how many lines are statements from beginning to end
    for end in range(1, len(lines) + 1):
        try:
            table = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:  # in the midst of a statement
            continue
        if _has(table, key):
            said = (
                number for number in range(whole, end) if lines[number].strip() and lines[number].lstrip()[0] != "#"
            )
            return next(said) + 1
        whole = end
    return None


def _has(table: Any, key: str) -> bool:
    for part in key.replace("[", ".").replace("]", "").split("."):
        if isinstance(table, list) and len(table) >= int(part):
            table = table[int(part) - 1]
        elif isinstance(table, dict) and part in table:
            table = table[part]
        else:
            return part == "url" and isinstance(table, str)
    return True


def _masked(key: str, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_masked(key, one) for one in value)
    if isinstance(value, Pace):
        return str(value)
    if not isinstance(value, str):
        return value
    return mask_path(value) if key in KEYS and KEYS[key].kind.secret else mask_url(value)
