"""Whether a letter may be edited."""

from redrive.core.errors import StateConflict
from redrive.core.life import LetterState, Life


def refuse_edit(letter_id: str, life: Life, *, version: int) -> None:
    """Raise `StateConflict` unless the letter is open or parked, and as the editor read it."""
    if life.state not in (LetterState.OPEN, LetterState.PARKED):
        raise StateConflict(f"letter {letter_id} is {life.state}; only an open or parked one can be edited")
    if life.version != version:
        raise StateConflict(f"letter {letter_id} has changed: it is of version {life.version}, not {version}")
