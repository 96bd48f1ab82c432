"""Canaries: which letters of a redrive go first, drawn at random so that nobody's choice decides what they tell."""

from collections.abc import Hashable, Iterable, Sequence
from random import Random
from typing import NamedTuple


class Drawn(NamedTuple):
    """The steps of a redrive: the sizes of its canary steps, and the step of each letter in the order given."""

    sizes: tuple[int, ...]
    steps: tuple[int, ...]


def draw(kinds: Sequence[Hashable], *, canary: Sequence[int], random: Random) -> Drawn:
    """Draw canaries: in each step that many of every kind (queue and type of error), the rest in the last step.

    Steps for which nothing is left are dropped: the last step is never empty, unless there are no letters at all.
    """
    places: dict[Hashable, list[int]] = {}
    for place, kind in enumerate(kinds):
        places.setdefault(kind, []).append(place)
    waiting = [random.sample(of, min(len(of), sum(canary))) for of in places.values()]  # of each kind, those drawn
    sizes = step_sizes(map(len, places.values()), canary=canary)
    steps = [len(sizes)] * len(kinds)
    for step, wanted in zip(range(len(sizes)), canary, strict=False):
        for drawn in waiting:
            for place in drawn[:wanted]:
                steps[place] = step
        waiting = [drawn[wanted:] for drawn in waiting]
    return Drawn(sizes, tuple(steps))


def step_sizes(counts: Iterable[int], *, canary: Sequence[int]) -> tuple[int, ...]:
    """The sizes of the canary steps, whoever is drawn: from how many letters there are of each kind."""
    left = [*counts]
    sizes: list[int] = []
    for wanted in canary:
        taken = sum(min(number, wanted) for number in left)
        if taken >= sum(left):
            break
        sizes.append(taken)
        left = [max(number - wanted, 0) for number in left]
    return tuple(sizes)
