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
    waiting: dict[Hashable, list[int]] = {}
    for place, kind in enumerate(kinds):
        waiting.setdefault(kind, []).append(place)
    for places in waiting.values():
        random.shuffle(places)
    step_of = [0] * len(kinds)
    sizes: list[int] = []
    left = len(kinds)
    for wanted in canary:
        taken = [place for places in waiting.values() for place in places[:wanted]]
        if len(taken) >= left:
            break
        for place in taken:
            step_of[place] = len(sizes)
        waiting = {kind: places[wanted:] for kind, places in waiting.items()}
        sizes.append(len(taken))
        left -= len(taken)
    for places in waiting.values():
        for place in places:
            step_of[place] = len(sizes)
    return Drawn(tuple(sizes), tuple(step_of))
