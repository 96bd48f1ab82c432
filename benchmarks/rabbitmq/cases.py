"""What is measured on RabbitMQ, but for the peers."""

from collections.abc import Collection

from benchmarks.beside import draining, failing
from benchmarks.runs import Case

PARTS = ("healthy", "failing", "peers")

HAND = "hand-written on aio-pika: consume, handle, ack"
OURS = "Redrive, handler takes bytes"
TYPED = "Redrive, handler takes a dict"

HAND_FAILING = "hand-written on aio-pika: published again or to the DLQ, confirmed, then acked"
OURS_FAILING = "Redrive, log level error"


def cases(parts: Collection[str], *, scale: float, loop: str) -> list[Case]:
    """The cases of these parts; `scale` 1 is the size that is written down. The healthy ones are always among them."""
    many, fewer = (max(round(size * scale), 20) for size in (40_000, 20_000))
    found = [
        draining("rabbitmq", HAND, "hand:drain", many, loop=loop),
        draining("rabbitmq", OURS, "redrive:drain", many, loop=loop),
        draining("rabbitmq", TYPED, "redrive:drain_typed", many, loop=loop),
    ]
    if "failing" in parts:
        found += [
            failing("rabbitmq", HAND_FAILING, "hand:drain_failing", fewer, loop=loop),
            failing("rabbitmq", OURS_FAILING, "redrive:drain_failing", fewer, loop=loop, log_level="error"),
        ]
    return found
