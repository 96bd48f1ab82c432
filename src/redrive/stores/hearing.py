"""What a batch of deaths and outcomes says about each of its letters: one answer for every store."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from redrive.core.attempt import Trail, join_trails
from redrive.core.letter import DeadLetter
from redrive.core.life import LetterState, Life, hear_death, hear_success
from redrive.core.redrive import RedriveOutcome
from redrive.core.stored import Collected
from redrive.stores.ledger import Spot


class Standing(NamedTuple):
    """What a store knows of a letter before it hears more.

    `died_in` is the generation of the death that it shows, `died_before` those of its other deaths: all of them, if the
    news tells of an older death than the one shown.
    """

    life: Life
    died_in: int
    spot: Spot
    died_before: Collection[int] = ()

    def is_new(self, generation: int) -> bool:
        """Whether a death in this generation has not been heard of."""
        return generation != self.died_in and generation not in self.died_before


class News(NamedTuple):
    """What a batch says about one letter."""

    deaths: list[DeadLetter]
    outcomes: list[RedriveOutcome]


class Heard(NamedTuple):
    """What a letter is after the news. `shown` is the death it shows from now on, None if that has not changed.

    `first` are the deaths that were heard of for the first time, each once; `past` the attempts of those that are not
    shown, to be joined to its trail.
    """

    life: Life
    shown: DeadLetter | None = None
    past: Trail = ()
    first: tuple[DeadLetter, ...] = ()

    def changes(self, before: Standing | None) -> bool:
        """Whether anything is not as it was."""
        return before is None or bool(self.first) or self.life != before.life

    def is_news(self, before: Standing | None) -> bool:
        """Whether a letter has come or reopened, or is told anew what it died of."""
        if before is None:
            return True
        waits = self.life.state in (LetterState.OPEN, LetterState.PARKED)
        return waits and (self.shown is not None or self.life != before.life)

    def died_before(self, before: Standing | None) -> set[int]:
        """The generations of deaths that are not shown, and of which that is new."""
        if not self.first or (before is None and len(self.first) == 1):  # then it is shown
            return set()
        told = {death.generation for death in self.first if death is not self.shown}
        return told if before is None or self.shown is None else told | {before.died_in}

    def in_words(self, before: Standing | None) -> dict[str, Any]:
        """What has changed, for the audit."""
        was = None if before is None else before.life.state.value
        return {"state": [was, self.life.state.value], "generation": self.life.generation}


class Answer(NamedTuple):
    """What became of one redriven message, for the item of its redrive. Without a fingerprint it succeeded."""

    letter_id: str
    generation: int
    fingerprint: str | None = None
    app_version: str = ""


_die = lru_cache(maxsize=256)(hear_death)  # the letters of a batch have few lives
_succeed = lru_cache(maxsize=256)(hear_success)


def by_letter(letters: Iterable[DeadLetter], outcomes: Iterable[RedriveOutcome]) -> dict[str, News]:
    """A batch, sorted by letter."""
    news: dict[str, News] = {}
    for letter in letters:
        if letter.letter_id in news:
            news[letter.letter_id].deaths.append(letter)
        else:
            news[letter.letter_id] = News([letter], [])
    for outcome in outcomes:
        if outcome.letter_id in news:
            news[outcome.letter_id].outcomes.append(outcome)
        else:
            news[outcome.letter_id] = News([], [outcome])
    return news


def hear(news: News, standing: Standing | None, *, buried_in: int | None = None) -> Heard | None:
    """What a letter is after the news, None if it is still not there. The same for any order of the same news.

    `buried_in` is the generation in which a letter was purged: only a later death brings it back, or counts.
    """
    if standing is None and buried_in is None and len(news.deaths) == 1 and not news.outcomes:  # as most letters come
        (only,) = news.deaths
        return Heard(_die(None, only.generation), only, (), (only,))
    if standing is not None and not news.deaths and len(news.outcomes) == 1:  # as most reports come
        (told,) = news.outcomes
        return Heard((_succeed if told.succeeded else _die)(standing.life, told.generation))
    life = None if standing is None else standing.life
    first: dict[int, DeadLetter] = {}
    for death in sorted(news.deaths, key=lambda one: one.generation):
        generation = death.generation
        if buried_in is not None and generation <= buried_in:
            continue
        life = hear_death(life, generation)
        if standing is None or standing.is_new(generation):
            first.setdefault(generation, death)
    if life is None:
        return None
    for outcome in sorted(news.outcomes, key=lambda one: (one.generation, one.succeeded)):
        hears = hear_success if outcome.succeeded else hear_death
        life = hears(life, outcome.generation)
    latest = max(first, default=-1)
    shown = first[latest] if first and (standing is None or latest > standing.died_in) else None
    past: Trail = ()
    for death in first.values():
        past = past if death is shown else join_trails(past, death.attempts)
    return Heard(life, shown, past, tuple(first.values()))


def answers(news: Mapping[str, News]) -> list[Answer]:
    """What the batch says about redriven messages; mere reports of failures say nothing, the letters do."""
    died = [
        Answer(letter_id, death.generation, death.fingerprint, death.app_version)
        for letter_id, (deaths, _) in news.items()
        for death in deaths
        if death.generation
    ]
    succeeded = [
        Answer(letter_id, outcome.generation, None, outcome.app_version)
        for letter_id, (_, outcomes) in news.items()
        for outcome in outcomes
        if outcome.succeeded
    ]
    return died + succeeded


class Tale:
    """Counts what collecting did."""

    def __init__(self, letters: Sequence[DeadLetter], outcomes: Sequence[RedriveOutcome]) -> None:
        self._told = len(letters) + len(outcomes)
        self._new = self._reopened = self._resolved = 0

    def add(self, before: Standing | None, heard: Heard) -> None:
        """Count one letter."""
        if before is None:
            self._new += 1
        elif heard.shown is not None and not heard.life.state.settled:
            self._reopened += 1
        resolved = LetterState.RESOLVED
        if heard.life.state is resolved and (before is None or before.life.state is not resolved):
            self._resolved += 1

    def result(self) -> Collected:
        """The counts; `known` is the rest of what was told."""
        rest = self._told - self._new - self._reopened - self._resolved
        return Collected(self._new, self._reopened, self._resolved, max(rest, 0))
