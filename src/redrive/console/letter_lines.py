"""A letter in a list, as people read it."""

from dataclasses import dataclass, replace
from datetime import datetime

from redrive.console.clip import line
from redrive.core.stored import LetterRow
from redrive.triage.masking import masked_row

SHORT = 12  # characters of an id that tell letters apart
LONGEST_ID = 300  # characters of an id that has an address: ours have 32
_LONGEST = 1024  # characters of a text that are masked: far more than are shown, so that no secret is cut in two
_TEXTS = ("error_type", "error_message", "error_code", "original_message_id", "user_id", "tenant_id", "app_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterLine:
    """One row: `letter_id` and `address` as they are, or empty where the id is too long; all else made harmless."""

    letter_id: str
    address: str
    short_id: str
    error: str
    message: str
    queue: str
    reason: str
    state: str
    generation: int
    about: str
    note: str
    failed_at: datetime


def seen_row(row: LetterRow) -> LetterRow:
    """A row as everybody may see it, its texts no longer than a list can show: to mask long ones takes a while."""
    kept = {name: text[:_LONGEST] for name in _TEXTS if (text := getattr(row, name)) is not None}
    return masked_row(replace(row, **kept))


def line_of(row: LetterRow, *, address: str) -> LetterLine:
    """The row of a letter that is masked already."""
    has_address = len(row.letter_id) <= LONGEST_ID
    about = [f"{name} {line(value, 60)}" for name, value in (("user", row.user_id), ("tenant", row.tenant_id)) if value]
    return LetterLine(
        letter_id=row.letter_id if has_address else "",
        address=address if has_address else "",
        short_id=line(row.letter_id[:SHORT], 80),
        error=line(short_type(row.error_type), 100),
        message=line(row.error_message, 240),
        queue=line(row.queue, 100),
        reason=row.reason.replace("_", " "),
        state=row.life.state.value,
        generation=row.life.generation,
        about=", ".join(about),
        note=line(row.note, 120),
        failed_at=row.failed_at,
    )


def short_type(error_type: str) -> str:
    """The type of an error without its module."""
    return error_type.rpartition(".")[2] or error_type or "unknown"
