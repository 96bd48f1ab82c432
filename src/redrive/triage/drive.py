"""What a redriver remembers of one redrive between two turns. All that matters is in the store."""

from datetime import datetime, timedelta
from typing import NamedTuple

from redrive.core.duration import NOW
from redrive.core.redrive import Progress, Redrive
from redrive.core.verdict import verdict
from redrive.triage.bucket import Bucket

FIRST_POLL = timedelta(milliseconds=200)
LIVELY_POLL = timedelta(seconds=2)
LONGEST_POLL = timedelta(seconds=10)
SILENCE = 10  # a wait is at most a tenth of the silence before it, so that a report is seen no more than that late
OLD = timedelta(seconds=1)


class Told(NamedTuple):
    """How far a redrive is, told while it runs. `waiting` says why nothing happens just now, if so."""

    redrive: Redrive
    progress: Progress
    waiting: str = ""

    @property
    def verdict(self) -> str:
        """That in one sentence."""
        return verdict(self.redrive, self.progress)


class Drive:
    """One redrive under way in this process.

    `pause` is how long to wait before the next turn, `held_until` when our lease on it is over.
    """

    def __init__(self, *, now: datetime) -> None:
        self.pause = NOW
        self.held_until = now
        self._happened_at = now
        self.progress: Progress | None = None
        self.told: Told | None = None
        self._looked_at: datetime | None = None
        self._bucket: Bucket | None = None

    def bucket(self, redrive: Redrive, *, now: datetime) -> Bucket:
        """The bucket that keeps its rate."""
        if self._bucket is None:
            self._bucket = Bucket(redrive.rate, now=now)
        return self._bucket

    def saw(self, progress: Progress, *, now: datetime) -> None:
        """Note how far it is. If it is further than before, that is something that happened."""
        if progress != self.progress:
            self.hurry(now=now)
        self.progress, self._looked_at = progress, now

    def is_old(self, *, now: datetime) -> bool:
        """Whether it is time to look how far it is."""
        return self._looked_at is None or now - self._looked_at >= OLD

    def hurry(self, *, now: datetime) -> None:
        """Something happened: the next turn comes at once."""
        self.pause, self._happened_at = NOW, now

    def rest(self, *, now: datetime) -> None:
        """Nothing happened: wait a little, each time a little longer."""
        lively = min(max(self.pause * 2, FIRST_POLL), LIVELY_POLL)
        self.pause = max(lively, min((now - self._happened_at) / SILENCE, LONGEST_POLL))
