"""An incident: letters with one fingerprint."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from redrive.core.letter import DeadLetter


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Letters that failed the same way. `sample` is the latest of them; the instants are times of failure."""

    fingerprint: str
    count: int
    first_at: datetime
    last_at: datetime
    queues: tuple[str, ...]
    sample: DeadLetter


def incidents_of(letters: Iterable[DeadLetter]) -> list[Incident]:
    """The incidents that these letters make, the largest first, then the latest; the same for any order of letters."""
    together: dict[str, list[DeadLetter]] = {}
    for letter in letters:
        together.setdefault(letter.fingerprint, []).append(letter)
    found = [_incident(fingerprint, alike) for fingerprint, alike in together.items()]
    return sorted(found, key=lambda one: (-one.count, -one.last_at.timestamp(), one.fingerprint))


def _incident(fingerprint: str, letters: list[DeadLetter]) -> Incident:
    sample = max(letters, key=lambda letter: (letter.failed_at, letter.letter_id, letter.generation))
    return Incident(
        fingerprint=fingerprint,
        count=len(letters),
        first_at=min(letter.failed_at for letter in letters),
        last_at=sample.failed_at,
        queues=tuple(sorted({letter.queue for letter in letters})),
        sample=sample,
    )
