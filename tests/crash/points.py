"""Named points: places in a process at which it can be told to die or to stand still.

Production code knows nothing of them: the harness wraps the broker (`staged.py`) and, for SQLite, the connection.
A point is armed by a file; the first process that comes by takes the file away and strikes itself.
"""

import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tests.crash.journal import Journal, Word

WORKER_POINTS: Final = (
    "fetched, not started",
    "before an ack",
    "after an ack, before its answer",
    "before a retry",
    "after a retry, before its answer",
    "before a give-up",
    "after a give-up, before its answer",
)
SUSPECT_POINTS: Final = (
    "suspect taken, not started",
    "suspect done, not settled",
    "suspect settled, before the answer",
)
PRODUCER_POINTS: Final = ("before a publish", "after a publish, before its answer")
REDRIVER_POINTS: Final = ("before a redrive", "after a redrive, before its answer")
EVERY_ADAPTER: Final = (*WORKER_POINTS, *SUSPECT_POINTS, *PRODUCER_POINTS, *REDRIVER_POINTS)


class Points:
    """The points of one run, as seen by one process. Safe from many threads and processes."""

    def __init__(self, folder: Path, journal: Journal) -> None:
        self._folder = folder
        self._journal = journal
        self.holds_lock: Callable[[], bool] = lambda: False  # a process that does is killed, but not stopped
        folder.mkdir(exist_ok=True)

    def arm(self, name: str, *, strike: signal.Signals = signal.SIGKILL) -> None:
        """Let the next process that reaches this point be struck there."""
        draft = self._folder.with_name("point")
        draft.write_text(strike.name)
        draft.replace(self._folder / name)

    def armed(self) -> set[str]:
        """The points that nobody has reached yet."""
        return {path.name for path in self._folder.iterdir()}

    def disarm(self) -> None:
        """Let every process pass every point."""
        for path in self._folder.iterdir():
            path.unlink(missing_ok=True)

    def reach(self, name: str, ids: Iterable[str] = ()) -> None:
        """Die or stop here if this point is armed."""
        path = self._folder / name
        try:
            strike = signal.Signals[path.read_text()]
            if strike is signal.SIGSTOP and self.holds_lock():
                return
            path.unlink()  # of two processes that come by at once, one fails here and goes on
        except FileNotFoundError:
            return
        self._journal.note(Word.POINT, id=next(iter(ids), ""), note=f"{strike.name} at a named point: {name}")
        os.kill(os.getpid(), strike)
