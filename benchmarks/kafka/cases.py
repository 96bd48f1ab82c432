"""What is measured on Kafka, but for the peers."""

from collections.abc import Collection

from benchmarks.beside import draining, failing
from benchmarks.kafka.hand import BATCH
from benchmarks.runs import Case

PARTS = ("healthy", "failing", "peers")

HAND = "hand-written: consume 500, handle, commit"
OURS = "Redrive, handler takes bytes"
BATCHES = "Redrive, batch handler takes 500"
TYPED = "Redrive, handler takes a dict"

HAND_FAILING = "hand-written: written again at once or to the DLQ, one transaction per 500"
OURS_FAILING = "Redrive, log level error"
OURS_FAILING_ALOUD = "Redrive, logs as they come"


def cases(parts: Collection[str], *, scale: float, loop: str) -> list[Case]:
    """The cases of these parts; `scale` 1 is the size that is written down. The healthy ones are always among them."""
    many, fewer = (max(round(size * scale), 20) for size in (200_000, 100_000))
    found = [
        draining("kafka", HAND, "hand:drain", many),
        draining("kafka", OURS, "redrive:drain", many, loop=loop),
        draining("kafka", BATCHES, "redrive:drain_batches", many, loop=loop, size=BATCH),
        draining("kafka", TYPED, "redrive:drain_typed", many, loop=loop),
    ]
    if "failing" in parts:
        found += [
            failing("kafka", HAND_FAILING, "hand:drain_failing", fewer),
            failing("kafka", OURS_FAILING, "redrive:drain_failing", fewer, loop=loop, log_level="error"),
            failing("kafka", OURS_FAILING_ALOUD, "redrive:drain_failing", fewer, loop=loop, log_level="info"),
        ]
    return found
