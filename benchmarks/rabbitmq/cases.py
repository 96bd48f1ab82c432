"""What is measured on RabbitMQ, but for the peers."""

from collections.abc import Collection
from typing import Any

from benchmarks.load import marked
from benchmarks.measure import warm_up
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
        _case(HAND, "hand:drain", many, loop=loop),
        _case(OURS, "redrive:drain", many, loop=loop),
        _case(TYPED, "redrive:drain_typed", many, loop=loop),
    ]
    if "failing" in parts:
        found += [
            _failing(HAND_FAILING, "hand:drain_failing", fewer, loop=loop),
            _failing(OURS_FAILING, "redrive:drain_failing", fewer, loop=loop, log_level="error"),
        ]
    return found


def _case(name: str, program: str, messages: int, **arguments: Any) -> Case:
    return Case(
        name=name,
        prepare="benchmarks.rabbitmq.hand:fill",
        preparation={"messages": messages},
        run=f"benchmarks.rabbitmq.{program}",
        arguments={"messages": messages, **arguments},
    )


def _failing(name: str, program: str, messages: int, **arguments: Any) -> Case:
    spared = warm_up(messages)  # so that what is measured has the same failures, whenever they are tried again
    return Case(
        name=name,
        prepare="benchmarks.rabbitmq.hand:fill",
        preparation={"messages": messages, "spared": spared},
        run=f"benchmarks.rabbitmq.{program}",
        arguments={"messages": messages, "dead": marked(messages, spared=spared), **arguments},
    )
