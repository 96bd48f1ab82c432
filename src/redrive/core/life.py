"""A letter's life in the store: which state it is in, whatever the order in which news of it arrives.

What is heard forms a ladder: a higher generation beats a lower one, and within a generation success beats death,
death beats having been sent. A state only ever climbs, so late, repeated and overtaken reports change nothing that
is already known. People's decisions (discard, park) stand until something higher is heard.
"""

from enum import StrEnum
from typing import NamedTuple

GENERATION_CAP = 5


class LetterState(StrEnum):
    """Where a letter is."""

    OPEN = "open"  # somebody should look
    REDRIVING = "redriving"  # sent back, nothing heard yet
    RESOLVED = "resolved"  # its redriven message succeeded
    DISCARDED = "discarded"  # a person decided that it is not needed
    PARKED = "parked"  # died once more at the generation cap; left only by asking for it

    __hash__ = str.__hash__  # that of a name, as for any text: letters are counted by it

    @property
    def settled(self) -> bool:
        """Whether nobody has to do anything about it any more."""
        return self in SETTLED


SETTLED = frozenset((LetterState.RESOLVED, LetterState.DISCARDED))


class Life(NamedTuple):
    """The state of a letter, its generation, and a version that every change of state raises."""

    state: LetterState
    generation: int
    version: int = 1

    def to(self, state: LetterState, *, generation: int | None = None) -> "Life":
        """Give the life after a change."""
        return Life(state, self.generation if generation is None else generation, self.version + 1)


def hear_death(life: Life | None, generation: int, *, cap: int = GENERATION_CAP) -> Life:
    """A message of this letter died in `generation`: at first sight, as a relapse, or told again."""
    state = LetterState.PARKED if generation >= cap else LetterState.OPEN
    if life is None:
        return Life(state, generation)
    if generation > life.generation or (generation == life.generation and life.state is LetterState.REDRIVING):
        return life.to(state, generation=generation)
    return life


def hear_success(life: Life, generation: int) -> Life:
    """A redriven message of this letter succeeded in `generation`."""
    if generation < life.generation or (generation == life.generation and life.state is LetterState.RESOLVED):
        return life
    return life.to(LetterState.RESOLVED, generation=generation)


def send(life: Life, *, previewed: int, over_cap: bool = False, again: bool = False) -> Life | None:
    """The letter is about to be sent back, if it is still as it was previewed; None if it is not.

    Parked letters need `over_cap`, letters that are out without an answer need `again`.
    """
    state = life.state
    allowed = (
        state is LetterState.OPEN
        or (over_cap and state is LetterState.PARKED)
        or (again and state is LetterState.REDRIVING)
    )
    if life.version != previewed or not allowed:
        return None
    return life.to(LetterState.REDRIVING, generation=life.generation + 1)


def discard(life: Life) -> Life | None:
    """A person discards the letter; None if there is nothing to discard."""
    return life.to(LetterState.DISCARDED) if life.state in (LetterState.OPEN, LetterState.PARKED) else None
