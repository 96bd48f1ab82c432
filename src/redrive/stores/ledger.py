"""What a change to letters does to the counts: deltas for one transaction, from rows really inserted or moved."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import repeat
from operator import attrgetter, floordiv, sub
from typing import Final, NamedTuple

from redrive.core.letter import DeadLetter
from redrive.core.life import LetterState
from redrive.stores.exact import EPOCH

_HOUR: Final = timedelta(hours=1)
_place: Final = attrgetter("queue", "reason", "error_type", "error_code")
_when: Final = attrgetter("failed_at", "letter_id")


class Spot(NamedTuple):
    """Where a letter is counted."""

    queue: str
    state: LetterState
    error_type: str
    reason: str
    fingerprint: str

    def in_state(self, state: LetterState) -> "Spot":
        """Where the letter is counted in another state."""
        return Spot(self.queue, state, self.error_type, self.reason, self.fingerprint)


class Death(NamedTuple):
    """Where a death is counted, by every dimension."""

    hour: datetime
    queue: str
    reason: str
    error_type: str
    error_code: str


@dataclass(slots=True)
class IncidentDelta:
    """What changes about one incident. `latest` is the last of the deaths that are new to it."""

    open: int = 0
    total: int = 0
    first_at: datetime | None = None
    latest: DeadLetter | None = None
    hours: defaultdict[datetime, int] = field(default_factory=lambda: defaultdict(int))
    queues: set[str] = field(default_factory=set)


class Ledger:
    """Adds up moves and arrivals; a store writes the sums in the transaction that makes them true."""

    def __init__(self) -> None:
        self.states: defaultdict[tuple[str, str, str, str], int] = defaultdict(int)
        self.deaths: Counter[Death] = Counter()
        self.incidents: dict[str, IncidentDelta] = {}

    def move(self, before: Spot | None, after: Spot | None, *, times: int = 1) -> None:
        """So many letters are counted at `after` instead of at `before`; None is outside of the store."""
        if before == after:
            return
        for spot, step in ((before, -times), (after, times)):
            if spot is not None:
                self.states[spot[:4]] += step
                incident = self._incident(spot.fingerprint)
                incident.total += step
                incident.open += 0 if spot.state.settled else step

    def arrive(self, deaths: Iterable[DeadLetter]) -> None:
        """Deaths that were not known before."""
        letters = [*deaths]
        places = [*map(_place, letters)]
        hours = [*hours_of(letter.failed_at for letter in letters)]
        for (hour, (queue, reason, error_type, code)), times in Counter(zip(hours, places, strict=True)).items():
            self.deaths[Death(hour, queue, reason.value, error_type, code or "")] += times
        for letter, hour, (queue, *_) in zip(letters, hours, places, strict=True):
            failed_at, incident = letter.failed_at, self._incident(letter.fingerprint)
            incident.hours[hour] += 1
            incident.queues.add(queue)
            if incident.first_at is None or failed_at < incident.first_at:
                incident.first_at = failed_at
            latest = incident.latest
            if latest is None or _when(letter) > _when(latest):
                incident.latest = letter

    def _incident(self, fingerprint: str) -> IncidentDelta:
        found = self.incidents.get(fingerprint)
        if found is None:
            found = self.incidents[fingerprint] = IncidentDelta()
        return found


def hours_of(instants: Iterable[datetime]) -> Iterable[datetime]:
    """The hours that instants are in, in UTC: without a call of ours for each."""
    return map(_hour, map(floordiv, map(sub, instants, repeat(EPOCH)), repeat(_HOUR)))


@lru_cache(maxsize=1024)
def _hour(number: int) -> datetime:
    """The same one each time: counting by it is quick."""
    return EPOCH + number * _HOUR
