"""What a change to letters does to the counts: deltas for one transaction, from rows really inserted or moved."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from redrive.core.letter import DeadLetter
from redrive.core.life import LetterState
from redrive.stores.exact import EPOCH

_HOUR: Final = timedelta(hours=1)


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
        self.states: Counter[tuple[str, str, str, str]] = Counter()
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
        for letter in deaths:
            queue, failed_at = letter.queue, letter.failed_at
            hour = hour_of(failed_at)
            self.deaths[Death(hour, queue, letter.reason.value, letter.error_type, letter.error_code or "")] += 1
            incident = self._incident(letter.fingerprint)
            incident.hours[hour] += 1
            incident.queues.add(queue)
            if incident.first_at is None or failed_at < incident.first_at:
                incident.first_at = failed_at
            latest = incident.latest
            if latest is None or (failed_at, letter.letter_id) > (latest.failed_at, latest.letter_id):
                incident.latest = letter

    def _incident(self, fingerprint: str) -> IncidentDelta:
        found = self.incidents.get(fingerprint)
        if found is None:
            found = self.incidents[fingerprint] = IncidentDelta()
        return found


def hour_of(instant: datetime) -> datetime:
    """The hour that an instant is in, in UTC."""
    return _hour((instant - EPOCH) // _HOUR)


@lru_cache(maxsize=1024)
def _hour(number: int) -> datetime:
    """The same one each time: counting by it is quick."""
    return EPOCH + number * _HOUR
