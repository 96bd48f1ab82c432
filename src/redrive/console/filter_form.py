"""The form that searches letters: its fields, what of it is set, and how each of that is taken away again."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from starlette.datastructures import ImmutableMultiDict

from redrive.console.choice import address_of
from redrive.console.clip import line
from redrive.core.life import LetterState
from redrive.core.printable import printable
from redrive.core.reason import Reason
from redrive.core.stored import Stats
from redrive.door.filters import LetterFilter
from redrive.triage.masking import masked_text

OFFERED = 100  # queues and types of error that are offered
LONGEST_OFFER = 200
_LOCAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?")  # what a browser's own field for instants gives

LABELS = {
    "q": "Text",
    "queue": "Queue",
    "error_type": "Error type",
    "reason": "Reason",
    "error_code": "Error code",
    "user_id": "User",
    "tenant_id": "Tenant",
    "app_version": "Version",
    "broker": "Broker",
    "kind": "Kind",
    "from": "From (UTC)",
    "to": "Before (UTC)",
    "state": "State",
    "fingerprint": "Incident",
}
_FIRST = ("queue", "error_type", "reason")
_MORE = ("error_code", "user_id", "tenant_id", "app_version", "broker", "kind", "from", "to")
_INSTANTS = ("from", "to")


class Chip(NamedTuple):
    """One condition that is set, and the address without it."""

    label: str
    text: str
    without: dict[str, Any]


class Field(NamedTuple):
    """One field of the form."""

    name: str
    label: str
    value: str
    offers: Sequence[str] = ()
    is_choice: bool = False
    is_instant: bool = False


@dataclass(frozen=True, slots=True)
class FilterForm:
    """The form as it stands. `kept` are conditions that are set elsewhere on the page, and travel along."""

    text: str
    first: Sequence[Field]
    more: Sequence[Field]
    kept: Sequence[tuple[str, str]]

    @property
    def more_is_open(self) -> bool:
        """Whether one of the fields that are seldom needed is set."""
        return any(field.value for field in self.more)


def with_zone(given: ImmutableMultiDict[str, str]) -> ImmutableMultiDict[str, str]:
    """What was given, without fields that were left empty, and with a zone behind instants that name none."""
    return ImmutableMultiDict(
        [
            (name, f"{value}Z" if name in _INSTANTS and _LOCAL.fullmatch(value) else value)
            for name, value in given.multi_items()
            if value
        ]
    )


def form_of(given: ImmutableMultiDict[str, str], stats: Stats) -> FilterForm:
    """The form with what was given, right or wrong; queues and types of error are offered as they are in the store."""
    offers = {"queue": _offers(stats.by_queue), "error_type": _offers(stats.by_error_type), "reason": [*Reason]}
    kept = [("state", value) for value in given.getlist("state") if value in {*LetterState}]
    kept += [("fingerprint", value) for value in given.getlist("fingerprint")]
    return FilterForm(
        text=given.get("q", ""),
        first=[_field(name, given, offers.get(name, ())) for name in _FIRST],
        more=[_field(name, given, ()) for name in _MORE],
        kept=kept,
    )


def chips_of(chosen: LetterFilter) -> list[Chip]:
    """What is set, each with the address that is left without it."""
    address = address_of(chosen)
    chips = []
    for name, label in LABELS.items():
        if name not in address:
            continue
        value = address[name]
        said = " or ".join(value) if isinstance(value, list) else _shown(name, str(value))
        chips.append(Chip(label, line(said, 80), {key: one for key, one in address.items() if key != name}))
    return chips


def _field(name: str, given: ImmutableMultiDict[str, str], offers: Sequence[str]) -> Field:
    value = given.get(name, "")
    is_instant = name in _INSTANTS
    return Field(name, LABELS[name], _shown(name, value), offers, is_choice=name == "reason", is_instant=is_instant)


def _shown(name: str, value: str) -> str:
    """A value as the form has it: instants as a browser's own field wants them."""
    if name not in _INSTANTS or not value:
        return value
    try:
        return datetime.fromisoformat(value).astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        return ""


def _offers(counts: Mapping[str, int]) -> list[str]:
    """The names that most letters have, of those that can be shown as they are."""
    most = sorted((name for name, number in counts.items() if number), key=lambda name: -counts[name])
    return [name for name in most if len(name) <= LONGEST_OFFER and printable(masked_text(name)) == name][:OFFERED]
