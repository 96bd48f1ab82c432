"""Which letters a page is about, as its address says it: a filter, some by their ids, an incident, or all."""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from starlette.datastructures import ImmutableMultiDict

from redrive.core.errors import ConfigError
from redrive.core.life import LetterState
from redrive.door.filters import LetterFilter
from redrive.triage.selection import Wanted

MOST_LETTERS = 100_000
MOST_IDS = 100  # what fits into an address
_SEVERAL = ("state",)
_NAMES = tuple(one.alias or name for name, one in LetterFilter.model_fields.items())


def filter_in(given: ImmutableMultiDict[str, str]) -> LetterFilter:
    """The filter in an address or a form. A field that was left empty asks for nothing. Raises `ConfigError`."""
    said: dict[str, Any] = {name: given[name].strip() for name in _NAMES if name in given and name not in _SEVERAL}
    said = {name: value for name, value in said.items() if value}
    said |= {name: found for name in _SEVERAL if (found := [one for one in given.getlist(name) if one])}
    try:
        return LetterFilter.model_validate(said)
    except ValidationError as error:
        raise ConfigError(
            [f"{'.'.join(map(str, one['loc']))}: {one['msg'].removeprefix('Value error, ')}" for one in error.errors()]
        ) from error


def address_of(chosen: LetterFilter) -> dict[str, Any]:
    """The filter as parameters of an address."""
    return chosen.model_dump(mode="json", by_alias=True, exclude_defaults=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The letters that something is to be done to: named in one way."""

    filter: LetterFilter
    letter_ids: tuple[str, ...] = ()
    everything: bool = False

    def wanted(self, states: tuple[LetterState, ...]) -> Wanted:
        """What to select, in these states unless the filter names some."""
        return Wanted(
            query=self.filter.query(),
            letter_ids=self.letter_ids,
            everything=self.everything,
            states=states,
            limit=MOST_LETTERS,
        )

    def address(self) -> dict[str, Any]:
        """The same as parameters of an address, or as hidden fields of a form."""
        if self.letter_ids:
            return {"letter_id": self.letter_ids}
        return {"all": "true"} if self.everything else address_of(self.filter)


def choice_in(given: ImmutableMultiDict[str, str]) -> Choice:
    """The choice in an address or a form: `letter_id`, which may be given often, `all`, or a filter.

    Raises `ConfigError`.
    """
    letter_ids = tuple(dict.fromkeys(one for one in given.getlist("letter_id") if one))
    chosen = filter_in(given)
    everything = given.get("all") == "true"
    if not (letter_ids or everything or not chosen.is_empty):
        raise ConfigError("letters: nothing was chosen; tick some letters first, or take all that match")
    if sum([bool(letter_ids), not chosen.is_empty, everything]) != 1:
        raise ConfigError("letters: expected a filter, letters that were ticked, or all of them, and only one of these")
    if len(letter_ids) > MOST_IDS:
        raise ConfigError(f"letter_id: expected at most {MOST_IDS} letters by id, got {len(letter_ids)}; use a filter")
    return Choice(filter=chosen, letter_ids=letter_ids, everything=everything)
