"""The desk: where a person, or a process in somebody's name, does something to letters."""

from dataclasses import dataclass
from typing import Any

from redrive.core.audit import Act
from redrive.core.ports import Clock, EventSink
from redrive.core.ports.cipher import Cipher
from redrive.core.ports.store import Store


@dataclass(frozen=True, slots=True)
class Desk:
    """A store, the time, and who stands there. Every change made at it is an act in that name.

    `cipher` opens letters that are kept encrypted, where its keys are at hand. `sink` hears what becomes of redrives.
    """

    store: Store
    clock: Clock
    who: str
    cipher: Cipher | None = None
    sink: EventSink | None = None

    def act(self, verb: str, *, selection: str = "", count: int | None = None, **detail: Any) -> Act:
        """A new act of this person, now. `count` says how many letters it is about, if it takes several calls."""
        return Act(who=self.who, verb=verb, at=self.clock.now(), selection=selection, count=count, detail=detail)
