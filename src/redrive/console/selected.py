"""The letters that a redrive was about, found again from the words that it keeps of them."""

from starlette.datastructures import ImmutableMultiDict

from redrive.console.choice import address_of, filter_in
from redrive.core.errors import ConfigError
from redrive.triage.selection import in_words

_NAMES = {"text": "q", "from_at": "from", "to_at": "to"}
_MOST = 20  # letters by id that are found


def letter_ids_in(words: str) -> list[str]:
    """The letters of a selection that named them, the first ones; none if it was a filter."""
    return words.removeprefix("letter=").split("|")[:_MOST] if words.startswith("letter=") else []


def filter_address(words: str) -> dict[str, object] | None:
    """The filter of a selection as parameters of an address, whatever the state of letters is now.

    None for words that do not say it beyond doubt: what was searched for may hold anything, and may be masked.
    """
    pairs = [tuple(one.partition("=")[::2]) for one in words.split(", ")]
    found = [(_NAMES.get(name, name), value) for name, value in pairs if name != "state"]
    states = [("state", one) for name, value in pairs if name == "state" for one in value.split("|")]
    try:
        chosen = filter_in(ImmutableMultiDict([*found, *states]))
    except ConfigError:
        return None
    if in_words(chosen.query()) != words:
        return None
    return {name: value for name, value in address_of(chosen).items() if name != "state"} or None
