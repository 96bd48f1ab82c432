"""What a preview holds, as far as a page has room for it: the largest parts, and the rest in one number."""

from collections.abc import Mapping
from typing import NamedTuple

from redrive.triage.masking import masked_counts
from redrive.triage.selection import Preview

_SHOWN = 10


class Part(NamedTuple):
    """One part of a whole."""

    name: str
    letters: int


class Parts(NamedTuple):
    """The largest parts, and how many others there are with how many letters."""

    largest: list[Part]
    others: int = 0
    others_letters: int = 0


def parts_of(counts: Mapping[str, int]) -> Parts:
    """The parts of a whole, the largest first."""
    found = [Part(name, count) for name, count in sorted(counts.items(), key=lambda one: -one[1])]
    rest = found[_SHOWN:]
    return Parts(found[:_SHOWN], len(rest), sum(part.letters for part in rest))


def breakdown(preview: Preview) -> dict[str, Parts]:
    """A preview by what people ask for first."""
    return {
        "queue": parts_of(preview.by_queue),
        "error type": parts_of(masked_counts(preview.by_error_type)),
        "state": parts_of(preview.by_state),
    }
