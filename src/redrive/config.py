"""Settings: `redrive.toml` and the environment as one frozen value, every mistake reported at once.

    broker = "sqlite:///redrive.db"     # REDRIVE_BROKER
    store = "sqlite:///letters.db"      # REDRIVE_STORE

    [log]
    level = "info"                      # REDRIVE_LOG_LEVEL: debug, info, warning or error
    format = "auto"                     # REDRIVE_LOG_FORMAT: auto, json or text

A flag of a command wins over the environment, the environment over the file, the file over the default. The
file is `redrive.toml` in the current folder, or the one that REDRIVE_CONFIG names. An empty variable is none.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import unquote, urlsplit

from redrive.core.errors import ConfigError

DEFAULT_BROKER = "sqlite:///redrive.db"
DEFAULT_STORE = "sqlite:///letters.db"

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "text"]

_FILE = "redrive.toml"
_PREFIX = "REDRIVE_"
_FILE_NAMED = f"{_PREFIX}CONFIG"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the outside says about how to run. `color` is False where NO_COLOR is set."""

    broker: str = DEFAULT_BROKER
    store: str = DEFAULT_STORE
    log_level: LogLevel = "info"
    log_format: LogFormat = "auto"
    color: bool = True


_KEYS = {"broker": "broker", "store": "store", "log.level": "log_level", "log.format": "log_format"}
_CHOICES: dict[str, tuple[str, ...]] = {"log.level": get_args(LogLevel), "log.format": get_args(LogFormat)}
_EXAMPLES = {"broker": DEFAULT_BROKER, "store": DEFAULT_STORE}
_VARIABLES = {_PREFIX + key.upper().replace(".", "_"): key for key in _KEYS}


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings. Raises `ConfigError` that lists every mistake with its key and what was expected."""
    environ = os.environ if environ is None else environ
    mistakes: list[str] = []
    found: dict[str, Any] = {"color": not environ.get("NO_COLOR")}
    for source, key, value in (*_from_file(environ, mistakes), *_from_environment(environ, mistakes)):
        if mistake := _mistake(key, value):
            mistakes.append(f"{source}: {mistake}")
        else:
            found[_KEYS[key]] = value
    if mistakes:
        raise ConfigError(mistakes)
    settings = Settings(**found)
    check_apart(settings.broker, settings.store)
    return settings


def check_apart(broker: str, store: str) -> None:
    """Raise `ConfigError` if both are the same SQLite file: the store's write lock would be on the way of every ack."""
    if (file := _sqlite_file(store)) is not None and file == _sqlite_file(broker):
        raise ConfigError(f"store: expected another file than the broker's, got {file.name} for both")


def _sqlite_file(url: str) -> Path | None:
    parts = urlsplit(url)
    return Path(unquote(parts.path).removeprefix("/")).resolve() if parts.scheme == "sqlite" else None


def _from_environment(environ: Mapping[str, str], mistakes: list[str]) -> Iterator[tuple[str, str, str]]:
    unknown = []
    for name, value in environ.items():
        if name in _VARIABLES and value:
            yield name, _VARIABLES[name], value
        elif name.startswith(_PREFIX) and name not in (_FILE_NAMED, *_VARIABLES):
            unknown.append(name)
    # Other programs may have REDRIVE_ variables of their own; only a near miss is surely a mistake.
    hints = {name: _did_you_mean(name, _VARIABLES) for name in unknown}
    mistakes.extend(f"{name}: unknown variable{hint}" for name, hint in hints.items() if hint)


def _from_file(environ: Mapping[str, str], mistakes: list[str]) -> Iterator[tuple[str, str, Any]]:
    named = environ.get(_FILE_NAMED)
    path = Path(named or _FILE)
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        if named:
            mistakes.append(f"{_FILE_NAMED}: expected the path of a settings file, no file is at {named!r}")
        return
    except (OSError, UnicodeDecodeError) as error:
        mistakes.append(f"{path}: cannot be read: {error}")
        return
    import tomllib  # noqa: PLC0415 - most programs have no such file

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        mistakes.append(f"{path}: not TOML: {error}")
        return
    for key, value in _flat(table):
        if key in _KEYS:
            yield f"{path}: {key}", key, value
        else:
            mistakes.append(f"{path}: {key}: unknown key{_did_you_mean(key, _KEYS)}")


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict) and f"{prefix}{name}" not in _KEYS:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _mistake(key: str, value: Any) -> str | None:
    if choices := _CHOICES.get(key):
        return None if value in choices else f"expected one of {', '.join(choices)}, got {value!r}"
    if isinstance(value, str) and "://" in value:
        return None
    shown = repr(value) if "@" not in str(value) else "a text with a password in it and no ://"
    return f"expected a URL such as {_EXAMPLES[key]}, got {shown}"


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    import difflib  # noqa: PLC0415 - only for mistakes

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    return f"; did you mean {close[0]}?" if close else ""
