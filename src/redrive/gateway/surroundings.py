"""What a gateway needs of the outside, beside the network: time, chance, and somebody to tell."""

from dataclasses import dataclass
from random import Random

from redrive.core.event import Event
from redrive.core.ports import Clock, EventSink
from redrive.gateway.alarms import Alarms


class NobodyListens:
    """An `EventSink` that forgets."""

    def emit(self, event: Event) -> None:
        """Take note of nothing."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Shared by all parts of one gateway."""

    clock: Clock
    alarms: Alarms
    random: Random
    sink: EventSink
