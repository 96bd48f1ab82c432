"""What the rooms ask of the outside: ports, and the small values that cross them."""

from redrive.core.ports.attempts import AttemptCounter
from redrive.core.ports.broker import (
    LEASE,
    Alive,
    Broker,
    Capabilities,
    Clock,
    DeadEntry,
    DeadLetterQueue,
    Depth,
    EventSink,
    Finding,
    NativeDeadLetters,
    Obituary,
    Options,
    Subscription,
    TellsState,
)
from redrive.core.ports.notifier import Notifier

__all__ = [
    "LEASE",
    "Alive",
    "AttemptCounter",
    "Broker",
    "Capabilities",
    "Clock",
    "DeadEntry",
    "DeadLetterQueue",
    "Depth",
    "EventSink",
    "Finding",
    "NativeDeadLetters",
    "Notifier",
    "Obituary",
    "Options",
    "Subscription",
    "TellsState",
]
