"""The terms of a redrive as a person types them: kept as typed, read as a whole, every mistake told at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeVar, get_args

from starlette.datastructures import ImmutableMultiDict

from redrive.console.choice import MOST_LETTERS
from redrive.core.duration import as_duration
from redrive.core.errors import ConfigError
from redrive.triage.redrives import Terms

PRESET = "1, 5, 25"
ALL_AT_ONCE = "all"
_MOST_STEPS = 20
_FASTEST = 1e6
_LONGEST = 1024

_Place = Literal["lane", "queue"]
_Confirm = Literal["reported", "quiet", "manual"]
_One = TypeVar("_One", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class TermsForm:
    """What stands in the form. `place` is where letters go: an address has `to` for an instant already."""

    canary: str = PRESET
    rate: str = ""
    place: str = ""
    target_queue: str = ""
    confirm: str = "reported"
    report_within: str = "5m"
    over_cap: bool = False
    again: bool = False

    @classmethod
    def of(cls, given: ImmutableMultiDict[str, str]) -> "TermsForm":
        """What an address or a form says; what it does not say is as usual."""
        said: dict[str, Any] = {name: given[name].strip()[:_LONGEST] for name in _READERS if name in given}
        return cls(**said, over_cap=given.get("over_cap") == "true", again=given.get("again") == "true")

    def address(self) -> dict[str, str]:
        """The same as parameters of an address."""
        said = {"over_cap": "true" if self.over_cap else "", "again": "true" if self.again else ""}
        return {**{name: getattr(self, name) for name in _READERS}, **said}

    def terms(self) -> Terms:
        """What it means. Raises `ConfigError` with every mistake, each beginning with the name of its field."""
        mistakes: list[str] = []
        read: dict[str, Any] = {}
        for name, reader in _READERS.items():
            try:
                read[name] = reader(getattr(self, name))
            except ValueError as error:
                mistakes.append(f"{name}: {error}")
        if mistakes:
            raise ConfigError(mistakes)
        read["to"] = read.pop("place")
        return Terms(**read, over_cap=self.over_cap, again=self.again)


def _steps(text: str) -> tuple[int, ...]:
    if text in ("", ALL_AT_ONCE):
        return ()
    try:
        steps = tuple(int(part) for part in text.split(","))
    except ValueError:
        steps = (0,)
    if len(steps) > _MOST_STEPS or not all(1 <= size <= MOST_LETTERS for size in steps):
        raise ValueError(f"expected the sizes of the first steps, such as {PRESET}, got {text!r}")
    return steps


def _rate(text: str) -> float | None:
    if not text:
        return None
    try:
        rate = float(text.removesuffix("/s"))
    except ValueError:
        rate = 0.0
    if not 0 < rate <= _FASTEST:
        raise ValueError(f"expected messages per second, such as 200, or nothing for no limit, got {text!r}")
    return rate


def _within(text: str) -> timedelta:
    found = as_duration(text)
    if not found:
        raise ValueError("expected more than zero")
    return found


def _queue(text: str) -> str | None:
    if "\x00" in text:
        raise ValueError("expected the name of a queue, without NUL")
    return text or None


def _one_of(names: tuple[_One, ...], text: str) -> _One:
    for name in names:
        if name == text:
            return name
    raise ValueError(f"expected one of {', '.join(names)}, got {text!r}")


_READERS: Mapping[str, Any] = {
    "canary": _steps,
    "rate": _rate,
    "place": lambda text: _one_of(get_args(_Place), text) if text else None,
    "target_queue": _queue,
    "confirm": lambda text: _one_of(get_args(_Confirm), text),
    "report_within": _within,
}


def by_field(mistakes: tuple[str, ...]) -> dict[str, str]:
    """Mistakes by the field that they are about; those about none of the form's own under an empty name."""
    found: dict[str, str] = {}
    for one in mistakes:
        name, _, said = one.partition(": ")
        field, text = (name, said) if name in _READERS else ("", one)
        found[field] = f"{found[field]}; {text}" if field in found else text
    return found
