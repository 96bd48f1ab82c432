"""For tests of code that uses Redrive: shipped, never imported by production."""

from redrive.testing.clock import ManualClock
from redrive.testing.queues import NullDeadLetterQueue, RecordingDeadLetterQueue
from redrive.testing.rehearsal import Letters, Rehearsal, run

__all__ = ["Letters", "ManualClock", "NullDeadLetterQueue", "RecordingDeadLetterQueue", "Rehearsal", "run"]
