"""Canaries: which letters of a redrive go first, drawn at random so that nobody's choice decides what they tell."""

from collections.abc import Hashable, Sequence
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
    step_of: dict[int, int] = {}  # of the canaries
    sizes: list[int] = []
    for wanted in canary:
        taken = [place for drawn in waiting for place in drawn[:wanted]]
        if len(step_of) + len(taken) >= len(kinds):
            break
        step_of |= dict.fromkeys(taken, len(sizes))
        waiting = [drawn[wanted:] for drawn in waiting]
        sizes.append(len(taken))
    steps = [len(sizes)] * len(kinds)
    for place, step in step_of.items():
        steps[place] = step
    return Drawn(tuple(sizes), tuple(steps))
