"""Adoption: what is in a DLQ that somebody else began, before it is taken over. Nothing is changed."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from redrive.core.letter import DeadLetter
from redrive.core.ports import DeadEntry, NativeDeadLetters
from redrive.core.reason import Reason

MOST = 10_000  # entries that are read for a survey
_PAGE = 500


class Form(StrEnum):
    """What an entry of a DLQ says of itself."""

    REDRIVE = "letters of Redrive"
    FOREIGN = "foreign letters that say what failed"
    DIGEST = "letters without their payload"
    BARE = "entries that say nothing of a failure"


def form_of(letter: DeadLetter) -> Form:
    """What kind of entry a letter was read from."""
    if letter.payload is None:
        return Form.DIGEST
    if letter.reason is not Reason.UNKNOWN:
        return Form.REDRIVE
    return Form.BARE if letter.error_type == "unknown" and not letter.error_message else Form.FOREIGN


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a DLQ holds. `looked_at` is fewer than `entries` in a large one; the counts are over those.

    `homeless` are those whose queue is not known: neither they say it, nor whoever asked.
    """

    dlq: str
    entries: int
    looked_at: int
    by_form: Mapping[Form, int]
    by_queue: Mapping[str, int]
    homeless: int
    sample: Sequence[DeadEntry]


async def survey(dead_letters: NativeDeadLetters, *, sample: int = 5) -> Survey:
    """Look through a DLQ. A letter whose queue would be the DLQ itself does not say where it belongs."""
    entries = [entry async for entry in _entries(dead_letters)]
    letters = [entry.letter for entry in entries]
    return Survey(
        dlq=dead_letters.name,
        entries=max(await dead_letters.length(), len(entries)),
        looked_at=len(entries),
        by_form=Counter(map(form_of, letters)),
        by_queue=Counter(letter.queue for letter in letters),
        homeless=sum(letter.queue == dead_letters.name for letter in letters),
        sample=entries[:sample],
    )


async def _entries(dead_letters: NativeDeadLetters) -> AsyncIterator[DeadEntry]:
    read, start = 0, None
    while read < MOST:
        page = await dead_letters.peek(_PAGE, start=start)
        new = [entry for entry in page if entry.entry_id != start]
        if not new:
            return
        for entry in new:
            yield entry
        read, start = read + len(new), new[-1].entry_id
