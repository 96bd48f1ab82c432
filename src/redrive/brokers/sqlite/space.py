"""A reserve on the disk: below it nothing new is taken on, so that what is in hand can still be settled."""

import os
import time
from pathlib import Path
from typing import Final

from redrive.core.errors import BrokerUnavailable
from redrive.core.event import BrokerFaulted
from redrive.core.ports import Clock, EventSink

MIB: Final = 1024 * 1024
RESERVE: Final = 64 * MIB
LOOKED_AT_FOR: Final = 0.2  # seconds


class Space:
    """The room left on the disk of a file."""

    def __init__(self, path: str, *, reserve: int, clock: Clock, sink: EventSink | None) -> None:
        self._path = path
        self.reserve = reserve
        self._clock = clock
        self._sink = sink
        self._free: int | None = None
        self._looked_at = float("-inf")
        self._short = False

    def require(self, call: str, *, queue: str, size: int = 0) -> None:
        """Raise `BrokerUnavailable` if `size` more bytes would reach into the reserve; at first also tell the sink."""
        free = self._look()
        short = free is not None and free - size < self.reserve
        if not short:
            self._short = False
            return
        why = (
            f"{self._path}: {(free or 0) // MIB} MiB are free on its disk; with less than {self.reserve // MIB} MiB"
            " left nothing is published or handed out, so that what is in hand can still be settled"
        )
        if not self._short and self._sink is not None:
            self._sink.emit(BrokerFaulted(at=self._clock.now(), queue=queue, call=call, why=why))
        self._short = True
        raise BrokerUnavailable(why)

    def _look(self) -> int | None:
        now = time.monotonic()
        if now - self._looked_at > LOOKED_AT_FOR:
            self._free, self._looked_at = free_bytes(self._path), now
        return self._free


def free_bytes(path: str) -> int | None:
    """The bytes that we may still write on the disk of this file; None if its folder is not there."""
    try:
        found = os.statvfs(Path(path).parent)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize
