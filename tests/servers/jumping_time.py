"""A clock for a server whose own timers matter: it runs as time does, and both jump when a test says so."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from redrive.core.duration import Duration, as_duration
from redrive.testing.clock import ManualClock
from tests.servers.frozen_time import libfaketime
from tests.servers.hurried_clock import HurriedClock


class JumpingClock(HurriedClock):
    """A hurried clock that a server shares by way of libfaketime, its timers included."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._file = folder / "time"
        self._show()

    def environment(self) -> Mapping[str, str]:
        """What makes a server look at this clock. Raises `Unavailable`."""
        return {
            "LD_PRELOAD": str(libfaketime()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
        }

    def advance(self, delta: timedelta) -> None:
        """Let time pass at once: first for the server, then for sleepers."""
        self._show(delta)
        super().advance(delta)

    def _show(self, more: timedelta = timedelta()) -> None:
        written = self._file.with_suffix(".next")
        written.write_text(f"+{(self.ahead + more).total_seconds():.6f}\n")
        written.replace(self._file)


class StandingClock(ManualClock):
    """A manual clock that begins at a server's time, and takes it along when it jumps; in between it stands still."""

    def __init__(self, servers: JumpingClock) -> None:
        super().__init__(servers.now())
        self._servers = servers

    def advance(self, delta: Duration) -> None:
        self._servers.advance(as_duration(delta))
        super().advance(delta)
