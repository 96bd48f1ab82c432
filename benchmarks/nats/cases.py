"""What is measured on NATS, but for the peers."""

from collections.abc import Collection

from benchmarks.beside import draining, failing
from benchmarks.runs import Case

PARTS = ("healthy", "failing", "peers")

HAND = "hand-written: fetch 500, handle, ack each, the last with an answer"
OURS = "Redrive, handler takes bytes"
TYPED = "Redrive, handler takes a dict"

HAND_FAILING = "hand-written: nak, the third time into a DLQ, confirmed, then ack; deliveries are the attempts"
OURS_FAILING = "Redrive, log level error"
OURS_FAILING_ALOUD = "Redrive, logs as they come"


def cases(parts: Collection[str], *, scale: float, loop: str) -> list[Case]:
    """The cases of these parts; `scale` 1 is the size that is written down. The healthy ones are always among them."""
    many, fewer = (max(round(size * scale), 20) for size in (100_000, 20_000))
    found = [
        draining("nats", HAND, "hand:drain", many, loop=loop),
        draining("nats", OURS, "redrive:drain", many, loop=loop),
        draining("nats", TYPED, "redrive:drain_typed", many, loop=loop),
    ]
    if "failing" in parts:
        found += [
            failing("nats", HAND_FAILING, "hand:drain_failing", fewer, loop=loop),
            failing("nats", OURS_FAILING, "redrive:drain_failing", fewer, loop=loop, log_level="error"),
            failing("nats", OURS_FAILING_ALOUD, "redrive:drain_failing", fewer, loop=loop, log_level="info"),
        ]
    return found
