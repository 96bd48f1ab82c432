"""What became of a letter that was sent back, told by somebody whose consumer cannot: it closes the loop."""

from dataclasses import dataclass, replace
from datetime import datetime

from redrive.core.attempt import Attempt
from redrive.core.errors import StateConflict
from redrive.core.fingerprint import fingerprint, mask
from redrive.core.letter import DeadLetter
from redrive.core.life import Life
from redrive.core.privacy import PrivacyFilter
from redrive.core.redrive import RedriveOutcome
from redrive.core.stored import StoredLetter
from redrive.triage.desk import Desk


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of a redriven message. A failure without an `error_type` is the one that the letter had before.

    `generation` is which time it was sent back; None is the last time.
    """

    succeeded: bool
    generation: int | None = None
    message_id: str = ""
    attempts: int = 1
    app_version: str = ""
    error_type: str = ""
    error_message: str = ""
    error_code: str | None = None


async def report(desk: Desk, letter_id: str, said: Report) -> Life:
    """Hear of a letter: it is resolved by a success and open again after a failure. Idempotent.

    Raises `LetterNotFound`, and `StateConflict` for a generation in which it was never sent back.
    """
    stored = await desk.store.get(letter_id)
    generation = stored.life.generation if said.generation is None else said.generation
    if not 1 <= generation <= stored.life.generation:
        sent = f"{stored.life.generation} times" if stored.life.generation else "never"
        raise StateConflict(f"letter {letter_id} was {sent} sent back: nothing can be told of generation {generation}")
    now = desk.clock.now()
    outcome = _outcome(stored, said, generation=generation, now=now)
    deaths = [] if said.succeeded else [_death(stored.letter, said, generation=generation, now=now)]
    act = desk.act("letters.outcome", selection=f"letter={letter_id}", generation=generation, succeeded=said.succeeded)
    await desk.store.collect(deaths, [outcome], act=act)
    return (await desk.store.get(letter_id)).life


def _outcome(stored: StoredLetter, said: Report, *, generation: int, now: datetime) -> RedriveOutcome:
    return RedriveOutcome(
        letter_id=stored.letter.letter_id,
        generation=generation,
        succeeded=said.succeeded,
        reported_at=now,
        queue=stored.letter.queue,
        group=stored.letter.group,
        message_id=said.message_id,
        attempts=said.attempts,
        app_version=said.app_version,
    )


def _death(letter: DeadLetter, said: Report, *, generation: int, now: datetime) -> DeadLetter:
    """The letter as it would have come from a consumer that can tell."""
    died = replace(
        letter,
        generation=generation,
        retry_count=said.attempts,
        failed_at=now,
        app_version=said.app_version or letter.app_version,
    )
    if said.error_type:
        message = _PRIVACY.text(said.error_message)
        same = (said.error_type, mask(message)) == (letter.error_type, mask(letter.error_message))
        found = letter.fingerprint if same else fingerprint(said.error_type, frame="", message=message)
        died = replace(
            died, error_type=said.error_type, error_message=message, error_code=said.error_code, fingerprint=found
        )
    attempt = Attempt(
        number=said.attempts,
        started_at=now,
        ended_at=now,
        error_type=died.error_type,
        error_message=died.error_message,
        error_code=died.error_code,
        generation=generation,
    )
    return replace(died, attempts=(attempt,))


_PRIVACY = PrivacyFilter()
