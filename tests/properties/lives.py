"""What can be heard of a letter, and a small model of what becomes of it: sets instead of an order of events."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from redrive.core.letter import DeadLetter
from redrive.core.life import GENERATION_CAP, LetterState
from redrive.core.redrive import ItemStatus, RedriveOutcome
from redrive.testing.conformance.store.bench import an_outcome, letter


class Kind(StrEnum):
    """What news is about."""

    DEATH = "death"  # a letter
    SUCCESS = "success"  # an outcome
    FAILURE = "failure"  # an outcome too: what its letter will say as well


class News(NamedTuple):
    """One thing that is heard of a letter, once or often."""

    kind: Kind
    generation: int

    def letters(self, name: str) -> list[DeadLetter]:
        """The news as letters, for a store."""
        if self.kind is not Kind.DEATH:
            return []
        fingerprint = fingerprint_of(self.generation)
        return [letter(name, generation=self.generation, fingerprint=fingerprint, error_type=f"Error{fingerprint}")]

    def outcomes(self, name: str) -> list[RedriveOutcome]:
        """The news as outcomes, for a store."""
        if self.kind is Kind.DEATH:
            return []
        return [an_outcome(name, self.generation, succeeded=self.kind is Kind.SUCCESS)]


def fingerprint_of(generation: int) -> str:
    """How a letter dies in a generation: at first always the same way, later in another."""
    return "f1" if generation < 2 else "f2"


@dataclass
class Story:
    """Everything that was heard of a letter and done to it. Nothing here knows what came first."""

    heard: set[News] = field(default_factory=set)
    sent: set[int] = field(default_factory=set)
    discarded: set[int] = field(default_factory=set)

    @property
    def deaths(self) -> list[int]:
        """The generations in which it died."""
        return sorted(generation for kind, generation in self.heard if kind is Kind.DEATH)

    @property
    def is_known(self) -> bool:
        """Whether there is a letter: an outcome alone makes none."""
        return bool(self.deaths)

    @property
    def generation(self) -> int:
        """The highest that was heard of or spent."""
        return max(self.sent | {generation for _, generation in self.heard})

    @property
    def state(self) -> LetterState:
        """What the highest generation says: success beats a person's decision, that beats death, that being out."""
        highest = self.generation
        if News(Kind.SUCCESS, highest) in self.heard:
            return LetterState.RESOLVED
        if highest in self.discarded:
            return LetterState.DISCARDED
        if {News(Kind.DEATH, highest), News(Kind.FAILURE, highest)} & self.heard:
            return LetterState.PARKED if highest >= GENERATION_CAP else LetterState.OPEN
        return LetterState.REDRIVING

    def answer(self, generation: int, *, fingerprint: str) -> ItemStatus | None:
        """What a redrive has heard of the message that it sent in a generation; None if nothing."""
        if News(Kind.SUCCESS, generation) in self.heard:
            return ItemStatus.SUCCEEDED
        if News(Kind.DEATH, generation) not in self.heard:
            return None
        same = fingerprint_of(generation) == fingerprint
        return ItemStatus.FAILED if same else ItemStatus.FAILED_OTHERWISE


def story_of(news: Iterable[News]) -> Story:
    """A letter of which only this was heard."""
    return Story({*news})
