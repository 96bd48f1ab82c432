"""Where values come from: the file, the environment and the flags of a command, in the order in which they win."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from redrive.config.kafka import KAFKA_VARIABLES
from redrive.config.keys import BROKER_KEYS, KEYS, PREFIX, Key, variable

FILE = "redrive.toml"
FILE_NAMED = f"{PREFIX}CONFIG"
TOKEN = f"{PREFIX}TOKEN"
ENCRYPTION_KEYS = f"{PREFIX}ENCRYPTION_KEYS"

_BROKER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")

Source = Literal["file", "variable", "flag"]


class Said(NamedTuple):
    """A value as somebody said it. `where` is what a person looks for: a file and its key, a variable or a flag."""

    key: str
    value: Any
    source: Source
    where: str


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The file, read; without one everything is empty. `names` are those of its brokers."""

    path: Path = Path(FILE)
    text: str = ""
    table: Mapping[str, Any] = field(default_factory=dict)
    names: Sequence[str] = ()

    @property
    def keys(self) -> Mapping[str, Key]:
        """Every key that there may be: those of its brokers too."""
        own = {f"brokers.{name}.{word}": key for name in self.names for word, key in BROKER_KEYS.items()}
        return {**KEYS, **own}

    @property
    def rules(self) -> Any:
        """The rules of retention, as they stand there."""
        return self.table.get("retention", ())

    def said(self, mistakes: list[str]) -> Iterator[Said]:
        """Each value in it; what is no key is a mistake."""
        known = self.keys
        for key, value in self._values():
            if key in known:
                yield Said(key, value, "file", f"{self.path}: {key}")
            else:
                mistakes.append(f"{self.path}: {key}: unknown key{did_you_mean(key, known)}")

    def _values(self) -> Iterator[tuple[str, Any]]:
        for key, value in _flat(self.table, known=self.keys):
            head, _, rest = key.partition(".")
            if head == "brokers" and rest in self.names:
                yield f"{key}.url", value  # brokers.orders = "redis://…" is enough if there is no more to say
            elif head != "retention" and (head != "brokers" or rest.partition(".")[0] in self.names):
                yield key, value


def read_file(environ: Mapping[str, str], mistakes: list[str]) -> SettingsFile:
    """`redrive.toml` in the current folder, or the file that REDRIVE_CONFIG names."""
    named = environ.get(FILE_NAMED)
    path = Path(named or FILE)
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        if named:
            mistakes.append(f"{FILE_NAMED}: expected the path of a settings file, no file is at {named!r}")
        return SettingsFile()
    except (OSError, UnicodeDecodeError) as error:
        mistakes.append(f"{path}: cannot be read: {error}")
        return SettingsFile()
    import tomllib  # noqa: PLC0415 - most programs have no such file

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        mistakes.append(f"{path}: not TOML: {error}")
        return SettingsFile()
    return SettingsFile(path, text, table, _broker_names(path, table, mistakes))


def from_environment(environ: Mapping[str, str], keys: Iterable[str], mistakes: list[str]) -> Iterator[Said]:
    """Each variable that is the name of a key. An empty one is none; a near miss is a mistake."""
    variables = {variable(key): key for key in keys}
    unknown = []
    for name, key in KAFKA_VARIABLES.items():
        if environ.get(name):
            yield Said(key, environ[name], "variable", name)
    for name, value in environ.items():
        if name in variables and value:
            yield Said(variables[name], value, "variable", name)
        elif name.startswith(PREFIX) and name not in (FILE_NAMED, TOKEN, ENCRYPTION_KEYS, *variables):
            unknown.append(name)
    # Other programs may have REDRIVE_ variables of their own; only a near miss is surely a mistake.
    own = [name.removeprefix(PREFIX) for name in variables]
    hints = {name: did_you_mean(name.removeprefix(PREFIX), own, before=PREFIX) for name in unknown}
    mistakes.extend(f"{name}: unknown variable{hint}" for name, hint in hints.items() if hint)


def from_flags(flags: Mapping[str, Any]) -> Iterator[Said]:
    """Each flag that was given: None is one that was not."""
    return (Said(key, value, "flag", KEYS[key].flag) for key, value in flags.items() if value is not None)


def the_environment(environ: Mapping[str, str] | None) -> Mapping[str, str]:
    """What was handed in, else the process's own."""
    return os.environ if environ is None else environ


def did_you_mean(name: str, known: Iterable[str], *, before: str = "") -> str:
    """A suggestion for a slip of the pen; nothing for what is like nothing."""
    import difflib  # noqa: PLC0415 - only for mistakes

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    return f"; did you mean {before}{close[0]}?" if close else ""


def _broker_names(path: Path, table: Mapping[str, Any], mistakes: list[str]) -> list[str]:
    """The names of the brokers. Two that one variable would speak of are one too many."""
    brokers = table.get("brokers", {})
    if not isinstance(brokers, dict):
        mistakes.append(f"{path}: brokers: expected a table for each broker, such as [brokers.orders], got {brokers!r}")
        return []
    seen: dict[str, str] = {}
    for name in brokers:
        if not _BROKER_NAME.fullmatch(name):
            mistakes.append(f"{path}: brokers.{name}: expected a name of letters, digits, - and _, got {name!r}")
        elif (other := seen.setdefault(variable(name), name)) != name:
            mistakes.append(f"{path}: brokers.{name}: expected a name of its own, got one like {other!r}")
    return [name for name in brokers if _BROKER_NAME.fullmatch(name)]


def _flat(table: Mapping[str, Any], *, known: Mapping[str, Key], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict) and f"{prefix}{name}" not in known:
            yield from _flat(value, known=known, prefix=f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
