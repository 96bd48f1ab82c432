"""The checker: from what was noted and what is left to the counts that must be zero. Pure."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.crash.journal import Entry
from tests.crash.plan import DEADLY, Fate, Plan
from tests.crash.testimony import Testimony

ZEROS: Mapping[str, str] = {
    "lost": "acknowledged, and neither done nor dead nor left in the queue",
    "phantom": "done or dead, and never sent",
    "innocents": "dead letters of messages that deserved none",
    "duplicates": "dead letters beyond the first of their message",
    "missed": "messages that deserved a dead letter and have none",
    "misjudged": "dead letters with a wrong reason, or with a wrong count of attempts or crashes",
    "altered": "dead letters whose payload or headers are not what was sent",
    "copies": "messages beyond the first with the same number",
    "early": "retries that started before they were due",
    "stuck": "unfinished at the time limit",
    "abandoned": "in the hands of processes that were gone, at the time limit",
    "undone": "acknowledged, and not done after the whole DLQ was redriven",
    "unreported": "redriven letters without exactly one report of success",
    "leaks": "things that should not be left in a drained broker",
    "unreached": "named points at which no process died",
}
"""Each of these must be zero."""

RAW = "letters beyond the first of their key"


@dataclass(frozen=True, slots=True)
class Found:
    """A dead letter as it was found in a DLQ."""

    id: str
    letter_id: str
    reason: str
    attempts: int = 1
    crashes: int = 0
    generation: int = 0
    intact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything the checker may know.

    `letters`, `left` and `abandoned` are from the moment when the queues had drained, or would not drain. With
    `by_key`, letters and reports of one key count as one: how many there were is shown.
    """

    plans: Mapping[str, Plan]
    journal: Sequence[Entry]
    letters: Sequence[Found] = ()
    left: int = 0
    abandoned: int = 0
    crash_limit: int = 3
    max_attempts: int = 4
    retry_delay: float = 0.0
    points: Collection[str] = ()
    after: "After | None" = None
    by_key: bool = False


@dataclass(frozen=True, slots=True)
class After:
    """What was found when every letter had been redriven, with its fate turned to ok, and the queues had drained."""

    letters: Sequence[Found] = ()
    left: int = 0
    reports: Mapping[tuple[str, int], int] = field(default_factory=dict)  # successes by (letter_id, generation)
    leaks: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The counts. `zeros` has an entry for each of `ZEROS`: what was found, by number or by name."""

    zeros: Mapping[str, Sequence[str]]
    shown: Mapping[str, int]

    @property
    def red(self) -> list[str]:
        """The counts that are not zero."""
        return [name for name, found in self.zeros.items() if found]


def check(evidence: Evidence) -> Verdict:
    """Account for every message."""
    raw = evidence.letters
    if evidence.by_key:
        evidence = replace(evidence, letters=_each_once(raw))
    told = Testimony(evidence.journal, evidence.plans)
    dead = Counter(letter.id for letter in evidence.letters)
    missing = sorted(told.acked - told.done_before - dead.keys())
    deserved = {name for name in told.acked if evidence.plans[name].fate in DEADLY}
    may_be_left = set(missing) if evidence.left else set()
    zeros: dict[str, list[str]] = {
        "lost": missing[evidence.left :],
        "phantom": sorted((told.done | dead.keys()) - told.invoked),
        "innocents": [one.id for one in evidence.letters if _is_innocent(evidence, one.id)],
        "duplicates": list((dead - Counter(dead.keys())).elements()),
        "missed": sorted(deserved - dead.keys() - may_be_left),
        "misjudged": [one.id for one in evidence.letters if not _is_just(evidence, told, one)],
        "altered": [one.id for one in evidence.letters if not one.intact],
        "copies": [name for name, origins in told.origins.items() for _ in range(len(origins) - 1)],
        "early": list(told.early(evidence.retry_delay, by_key=evidence.by_key)),
        "stuck": ["a message"] * evidence.left,
        "abandoned": ["a message"] * evidence.abandoned,
        "unreached": sorted({*evidence.points} - told.points),
    }
    zeros |= _check_after(evidence, told)
    shown = _shown(told, dead, evidence)
    if evidence.by_key:
        shown[RAW] = len(raw) - len(evidence.letters)
    return Verdict({name: zeros[name] for name in ZEROS}, shown)


def _each_once(letters: Sequence[Found]) -> Sequence[Found]:
    """The first letter of every key."""
    return list({(one.letter_id, one.generation): one for one in reversed(letters)}.values())[::-1]


def _is_innocent(evidence: Evidence, name: str) -> bool:
    plan = evidence.plans.get(name)
    return plan is not None and plan.fate not in DEADLY


def _is_just(evidence: Evidence, told: Testimony, letter: Found) -> bool:
    """Whether a letter says the truth about a message that deserved it. Innocents are counted elsewhere."""
    plan = evidence.plans.get(letter.id)
    if plan is None or plan.fate not in DEADLY:
        return True
    if letter.reason != DEADLY[plan.fate]:
        return False
    if plan.fate is Fate.KILLER:
        return letter.crashes == letter.attempts == evidence.crash_limit
    failures = letter.attempts - letter.crashes
    if plan.fate is not Fate.POISON:
        return failures == 1
    starts = [one for one in told.starts[letter.id] if one.generation == 0]
    least = 0 if evidence.by_key else len(told.undisturbed(starts))  # of two copies each has its own attempts
    return failures == evidence.max_attempts and least <= failures <= len(starts)


def _check_after(evidence: Evidence, told: Testimony) -> dict[str, list[str]]:
    after = evidence.after
    if after is None:
        return {"undone": [], "unreported": [], "leaks": []}
    undone = sorted(told.acked - told.done) + [letter.id for letter in after.letters] + ["a message"] * after.left
    wanted = Counter((letter.letter_id, letter.generation + 1) for letter in evidence.letters)
    reports = Counter(dict.fromkeys(after.reports, 1) if evidence.by_key else after.reports)
    unreported = [*(wanted - reports).elements(), *(reports - wanted).elements()]
    return {"undone": undone, "unreported": [f"{name}:{n}" for name, n in unreported], "leaks": list(after.leaks)}


def _shown(told: Testimony, dead: Counter[str], evidence: Evidence) -> dict[str, int]:
    unsure = told.invoked - told.acked
    return {
        "sent": len(told.invoked),
        "acknowledged": len(told.acked),
        "unknown": len(unsure),
        "unknown, seen": len(unsure & (told.done_before | dead.keys())),
        "done": len(told.done_before - dead.keys()),
        "dead": len(dead),
        "both": len(told.done_before & dead.keys()),
        "left": evidence.left,
        "starts": sum(map(len, told.starts.values())),
        "fenced": told.fenced,
        "re-executions": sum(told.runs.values()) - len(told.runs),
        **{f"fault: {kind}": count for kind, count in sorted(told.faults.items())},
    }
