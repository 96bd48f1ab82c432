"""What is measured on Kafka, but for the peers."""

from collections.abc import Collection
from typing import Any

from benchmarks.load import marked
from benchmarks.measure import warm_up
from benchmarks.runs import Case

PARTS = ("healthy", "failing", "peers")

HAND = "hand-written: consume 500, handle, commit"
OURS = "Redrive, handler takes bytes"
TYPED = "Redrive, handler takes a dict"

HAND_FAILING = "hand-written: written again at once or to the DLQ, one transaction per 500"
OURS_FAILING = "Redrive, log level error"
OURS_FAILING_ALOUD = "Redrive, logs as they come"


def cases(parts: Collection[str], *, scale: float, loop: str) -> list[Case]:
    """The cases of these parts; `scale` 1 is the size that is written down. The healthy ones are always among them."""
    many, fewer = (max(round(size * scale), 20) for size in (200_000, 100_000))
    found = [
        _case(HAND, "hand:drain", many),
        _case(OURS, "redrive:drain", many, loop=loop),
        _case(TYPED, "redrive:drain_typed", many, loop=loop),
    ]
    if "failing" in parts:
        found += [
            _failing(HAND_FAILING, "hand:drain_failing", fewer),
            _failing(OURS_FAILING, "redrive:drain_failing", fewer, loop=loop, log_level="error"),
            _failing(OURS_FAILING_ALOUD, "redrive:drain_failing", fewer, loop=loop, log_level="info"),
        ]
    return found


def _case(name: str, program: str, messages: int, **arguments: Any) -> Case:
    return Case(
        name=name,
        prepare="benchmarks.kafka.hand:fill",
        preparation={"messages": messages},
        run=f"benchmarks.kafka.{program}",
        arguments={"messages": messages, **arguments},
    )


def _failing(name: str, program: str, messages: int, **arguments: Any) -> Case:
    spared = warm_up(messages)  # so that what is measured has the same failures, whenever they are tried again
    return Case(
        name=name,
        prepare="benchmarks.kafka.hand:fill",
        preparation={"messages": messages, "spared": spared},
        run=f"benchmarks.kafka.{program}",
        arguments={"messages": messages, "dead": marked(messages, spared=spared), **arguments},
    )
