"""No open connection crosses a fork.

SQLite keeps notes, per process, about the locks it has on a file. A child inherits the notes but not the locks, and
would believe them even on a connection of its own. So before a fork every committer closes its file and waits; in the
parent it opens it again with its next job, in the child a new one is made.
"""

import os
import threading
from dataclasses import dataclass, field
from typing import Final, Protocol
from weakref import WeakSet

from redrive.brokers.sqlite.errors import BUSY_SECONDS

PATIENCE: Final = BUSY_SECONDS + 5  # seconds; whoever does not answer by then is busy with a broken disk


@dataclass(slots=True, eq=False)
class Halt:
    """Close the file, say so, and go on when told."""

    closed: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)


class Halting(Protocol):
    """A thread with an open file."""

    def is_alive(self) -> bool:
        """Whether it runs."""
        ...

    def put(self, entry: Halt, /) -> None:
        """Ask it to halt."""
        ...


_threads: WeakSet[Halting] = WeakSet()
_halts: list[Halt] = []


def watch_over(thread: Halting) -> None:
    """Halt this thread around every fork of this process."""
    _threads.add(thread)


def _before() -> None:
    for thread in [thread for thread in _threads if thread.is_alive()]:
        halt = Halt()
        thread.put(halt)
        _halts.append(halt)
    for halt in _halts:
        halt.closed.wait(PATIENCE)


def _after() -> None:
    for halt in _halts:
        halt.over.set()
    _halts.clear()


if hasattr(os, "register_at_fork"):  # the child's copies of these threads do not run: there is nobody to wake
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_halts.clear)
