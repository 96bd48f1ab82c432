"""What the journal says, sorted by message."""

import signal
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from tests.crash.journal import Entry, Word
from tests.crash.plan import Fate, Plan

TICK = 0.002  # clocks are read a little before or after what they are read for


class Testimony:
    """Sets and lists of what was noted; `done_before` and `runs` tell generation 0 from what came after a redrive."""

    def __init__(self, journal: Sequence[Entry], plans: Mapping[str, Plan]) -> None:
        by_word: dict[Word, list[Entry]] = defaultdict(list)
        for entry in journal:
            by_word[entry.word].append(entry)
        self.invoked = {entry.id for entry in by_word[Word.INVOKE]}
        self.acked = {entry.id for entry in by_word[Word.OK]}
        self.done = {entry.id for entry in by_word[Word.DONE]}
        self.done_before = {entry.id for entry in by_word[Word.DONE] if entry.generation == 0}
        self.runs = Counter((entry.id, entry.generation) for entry in by_word[Word.DONE])
        self.starts = _by_message(by_word[Word.START])
        self.origins = {name: {entry.origin for entry in entries} for name, entries in self.starts.items()}
        kills = [entry.note for entry in by_word[Word.POINT] if entry.note.startswith(signal.SIGKILL.name)]
        self.points = {note.partition(": ")[2] for note in kills}
        deaths = [entry for entry in by_word[Word.START] if _is_death(entry, plans)]
        struck = [*by_word[Word.FAULT], *by_word[Word.POINT]]
        self.faults = Counter(entry.note.partition(":")[0] for entry in struck)
        self.faults["SIGKILL by a killer message"] = len(deaths)
        self._fails = _by_message(by_word[Word.FAIL])
        self._struck = {entry.pid for entry in (*struck, *deaths)}
        self.fenced = len({(entry.pid, entry.id) for entry in by_word[Word.FENCED]})
        self._taken = {(entry.pid, entry.id) for entry in (*by_word[Word.CUT], *by_word[Word.FENCED])}

    def undisturbed(self, entries: Iterable[Entry]) -> list[Entry]:
        """Those whose process was never struck, and still had the message when it settled."""
        return [one for one in entries if one.pid not in self._struck and (one.pid, one.id) not in self._taken]

    def early(self, delay: float, *, by_key: bool = False) -> Iterable[str]:
        """Messages of which a retry started before its delay was over, once for each.

        With `by_key` there may be two copies with one key: the retry of the first may be due before the other fails.
        """
        for name, fails in self._fails.items():
            judged = reversed(fails) if by_key else self.undisturbed(fails)
            failed_at = {(one.generation, one.attempt): one.at for one in judged}
            for start in self.starts.get(name, ()):
                before = failed_at.get((start.generation, start.attempt - 1))
                if before is not None and start.at < before + delay - TICK:
                    yield name


def _by_message(entries: Iterable[Entry]) -> Mapping[str, list[Entry]]:
    found: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        found[entry.id].append(entry)
    return found


def _is_death(start: Entry, plans: Mapping[str, Plan]) -> bool:
    plan = plans.get(start.id)
    return plan is not None and plan.fate is Fate.KILLER and start.generation == 0
