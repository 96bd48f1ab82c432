"""The story of a letter: generation by generation, what was tried and what became of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from redrive.console.clip import line
from redrive.console.letter_lines import short_type
from redrive.console.words import span
from redrive.core.attempt import Attempt
from redrive.core.audit import AuditRecord
from redrive.core.life import LetterState
from redrive.core.redrive import RedriveOutcome
from redrive.core.stored import StoredLetter

MOST = 60  # attempts that are shown, the latest


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One attempt."""

    number: int
    at: datetime
    took: str
    is_crash: bool
    error: str
    message: str
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """How the message went out this time, what was tried, and the answer if there is one."""

    number: int
    tries: Sequence[Try] = ()
    sent_at: datetime | None = None
    sent_by: str = ""
    redrive_id: str = ""
    answer: str = ""
    answer_at: datetime | None = None
    state: str = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Every generation, the latest first. `redrive_ids` are redrives that nothing else is known of."""

    generations: Sequence[Generation]
    left_out: int
    redrive_ids: Sequence[str]


def story_of(shown: StoredLetter, records: Sequence[AuditRecord]) -> Story:
    """The story of a letter, masked or not, with what the audit knows of its redrives."""
    attempts = shown.letter.attempts[-MOST:]
    tries: dict[int, list[Try]] = {}
    for attempt in attempts:
        tries.setdefault(attempt.generation, []).append(_try(attempt))
    sent = {found: record for record in records if (found := _generation_of(record)) is not None}
    outcomes = {outcome.generation: outcome for outcome in shown.outcomes}
    known = sorted({0, shown.life.generation, *tries, *sent, *outcomes}, reverse=True)
    generations = [
        _told(number, shown, tries=tries.get(number, ()), sent=sent.get(number), outcome=outcomes.get(number))
        for number in known[:MOST]
    ]
    told = {one.redrive_id for one in generations}
    return Story(
        generations=generations,
        left_out=len(shown.letter.attempts) - len(attempts),
        redrive_ids=[one for one in shown.redrive_ids[-MOST:] if one not in told],
    )


def _told(
    number: int,
    shown: StoredLetter,
    *,
    tries: Sequence[Try],
    sent: AuditRecord | None,
    outcome: RedriveOutcome | None,
) -> Generation:
    is_last = number == shown.life.generation
    state, answer, at = "failed", "", None
    if outcome is not None:
        at = outcome.reported_at
        on = f" on version {line(outcome.app_version, 60)}" if outcome.app_version else ""
        state = "succeeded" if outcome.succeeded else "failed"
        answer = f"{'It succeeded' if outcome.succeeded else 'It failed again'}{on}"
    elif is_last and shown.life.state is LetterState.REDRIVING:
        state, answer = "sent", "Out: nothing was heard of it yet"
    elif number and is_last and shown.life.state is not LetterState.RESOLVED:
        answer = "It died again"
    return Generation(
        number=number,
        tries=tries,
        sent_at=sent.at if sent else None,
        sent_by=line(sent.who, 80) if sent else "",
        redrive_id=_redrive_of(sent.detail) if sent else "",
        answer=answer,
        answer_at=at,
        state=state,
    )


def _try(attempt: Attempt) -> Try:
    return Try(
        number=attempt.number,
        at=attempt.started_at,
        took=lasted(attempt.ended_at - attempt.started_at),
        is_crash=attempt.crash,
        error=line(short_type(attempt.error_type), 100),
        message=line(attempt.error_message, 200),
        node=line(attempt.node, 60),
    )


def lasted(length: timedelta) -> str:
    """How long something took."""
    if length >= timedelta(seconds=1):
        return span(length)
    millis = length // timedelta(milliseconds=1)
    return f"{millis} ms" if millis > 0 else "under 1 ms"


def _generation_of(record: AuditRecord) -> int | None:
    found = record.detail.get("generation")
    return found if record.verb == "letters.redrive" and isinstance(found, int) else None


def _redrive_of(detail: Mapping[str, object]) -> str:
    found = detail.get("redrive", "")
    return found if isinstance(found, str) else ""
