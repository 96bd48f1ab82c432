"""From what was noted and what the store says to the counts of a way back that must be zero. Pure."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from redrive.core.life import LetterState
from redrive.core.redrive import ItemStatus, Progress
from redrive.core.stored import StoredLetter
from tests.crash.checker import Verdict
from tests.crash.journal import Entry, Word

ZEROS: Mapping[str, str] = {
    "published twice": "letters sent back as more than one message in a generation",
    "run twice": "redriven messages that more than one handler saw whose process was not killed",
    "phantom": "letters or runs of messages that were never published",
    "unresolved": "published messages without a letter that was resolved",
    "not once": "letters without exactly one claim in the audit and one report of success, both of generation 1",
    "unconfirmed": "letters of the redrive that did not end as succeeded",
    "miscounted": "tallies that are not what a recount gives",
    "left": "what should not be left in a drained broker",
    "unended": "processes that did not end by themselves with status 0, and a redrive that is not done",
    "unreached": "strikes that found nobody",
}
"""Each of these must be zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """Everything the checker may know about a way back."""

    published: Collection[str]
    journal: Sequence[Entry]
    letters: Sequence[StoredLetter]
    progress: Progress
    claims: Mapping[str, int]
    by_state: Mapping[str, int]
    left: Sequence[str]
    unended: Sequence[str]
    strikes: int


def check_return(found: Return) -> Verdict:
    """Account for every letter."""
    runs = [entry for entry in found.journal if entry.word is Word.START and entry.generation]
    messages: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for run in runs:
        messages[run.id, run.generation].add(run.note)
    killed = {entry.pid for entry in found.journal if entry.word is Word.FAULT}
    names = {_name(stored) for stored in found.letters}
    resolved = {_name(one) for one in found.letters if one.life.state is LetterState.RESOLVED}
    faults = Counter(entry.note for entry in found.journal if entry.word in (Word.FAULT, Word.POINT))
    zeros: dict[str, list[str]] = {
        "published twice": [f"{name}:{number}" for (name, number), ids in messages.items() if len(ids) > 1],
        "run twice": [
            name for name, number in Counter(run.note for run in runs if run.pid not in killed).items() if number > 1
        ],
        "phantom": sorted((names | {run.id for run in runs}) - {*found.published}),
        "unresolved": sorted({*found.published} - resolved),
        "not once": [_name(one) for one in found.letters if not _is_once(one, found.claims)],
        "unconfirmed": [
            f"{number} {status}"
            for step in found.progress.steps
            for status, number in step.items()
            if number and status is not ItemStatus.SUCCEEDED
        ],
        "miscounted": _miscounted(found),
        "left": [*found.left],
        "unended": [*found.unended],
        "unreached": ["a strike"] * (found.strikes - faults.total()),
    }
    shown = {
        "letters": len(found.letters),
        "resolved": len(resolved),
        "redriven messages": sum(len(ids) for ids in messages.values()),
        "re-executions": len(runs) - len({run.note for run in runs}),
        **{f"fault: {kind}": number for kind, number in faults.items()},
    }
    return Verdict(zeros, shown)


def _name(stored: StoredLetter) -> str:
    return (stored.letter.payload or b"").decode()


def _is_once(stored: StoredLetter, claims: Mapping[str, int]) -> bool:
    reports = [(one.generation, one.succeeded) for one in stored.outcomes]
    return claims.get(stored.letter.letter_id) == 1 and reports == [(1, True)] and stored.life.generation == 1


def _miscounted(found: Return) -> list[str]:
    recount = Counter(stored.life.state.value for stored in found.letters)
    return [] if recount == found.by_state else [f"{dict(found.by_state)} instead of {dict(recount)}"]
