"""A clock for a server whose own timers matter: it runs as time does, and both jump when a test says so."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

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
