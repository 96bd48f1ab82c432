"""A clock for a server that stands still until a test moves it."""

import os
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path

from redrive.core.duration import Duration, as_duration
from redrive.testing.clock import ManualClock
from tests.servers import roll
from tests.servers.install import Needed, require

PLACES = ("lib/*/faketime", "lib64/faketime", "lib/faketime", "local/lib/faketime")


class FrozenClock(ManualClock):
    """A manual clock that servers share by way of libfaketime: `advance` moves them too.

    Only the time of day stands still. A server's own timers run on, so it notices by itself that a time has come; but
    a client that waits at the server for half a minute waits until the clock is moved.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._file = folder / "time"
        self._show(timedelta())

    def environment(self) -> Mapping[str, str]:
        """What makes a server look at this clock. Raises `Unavailable`."""
        return {
            # The allocator jemalloc asks for the time before libfaketime is ready to answer, and both wait for ever.
            # The C library before it takes its place.
            "LD_PRELOAD": f"{libfaketime()}:libc.so.6",
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "TZ": "UTC",
        }

    def advance(self, delta: Duration) -> None:
        """Let time pass: first for the servers, for which the next look at the clock is enough, then for sleepers."""
        self._show(as_duration(delta))
        super().advance(delta)

    def _show(self, delta: timedelta) -> None:
        written = self._file.with_suffix(".next")
        # The last digit is a tenth of a microsecond more: libfaketime may round down, and then it does no harm.
        written.write_text(f"{self.now() + delta:%Y-%m-%d %H:%M:%S.%f}1")
        written.replace(self._file)


@cache
def libfaketime() -> Path:
    found = require(Needed("libfaketime", _find, package="libfaketime", advice="libfaketime"))
    roll.used("libfaketime", str(found))
    return found


def _find() -> Path | None:
    if os.uname().sysname != "Linux":
        return None
    found = (path for place in PLACES for path in Path("/usr").glob(f"{place}/libfaketimeMT.so.1"))
    return next(found, None)
