"""What is measured on SQLite."""

from typing import Any

from benchmarks.runs import Case

HAND = "hand-written: lease 500, then ack, a transaction each"
MERGED = "hand-written: ack and lease the next 500 in one transaction"
OURS = "Redrive, handler takes bytes"
TYPED = "Redrive, handler takes a dict"

HAND_FAILING = "hand-written: failures counted, the dead moved to a table"
OURS_FAILING = "Redrive, logs as they come"
OURS_FAILING_QUIETLY = "Redrive, log level error"

SAME_PROCESS = "publish to handler, same process"
OTHER_PROCESS = "publish to handler, another process"
RETRY = "retry after 50 ms: how late"


def waiting(scale: float) -> dict[str, int]:
    """How many messages wait in a file, by the name of the case."""
    sizes = [max(round(size * scale), 20) for size in (10_000, 100_000, 1_000_000)]
    return {f"{size:,} waiting": size for size in sizes}


def cases(scale: float) -> list[Case]:
    """Every case; `scale` 1 is the size that is written down."""
    many, fewer, few = (max(round(size * scale), 20) for size in (100_000, 30_000, 100))
    least = min(waiting(scale).values())
    return [
        _hand(HAND, "drain", many),
        _hand(MERGED, "drain_merged", many),
        _ours(OURS, "drain", many),
        _ours(TYPED, "drain_typed", many),
        _hand(HAND_FAILING, "drain_failing", fewer),
        _ours(OURS_FAILING, "drain_failing", fewer, log_level="info"),
        _ours(OURS_FAILING_QUIETLY, "drain_failing", fewer, log_level="error"),
        *(_ours(name, "drain", least, waiting=size, whole=False) for name, size in waiting(scale).items()),
        _low_load(SAME_PROCESS, "wait_for_handler", few, apart=False),
        _low_load(OTHER_PROCESS, "wait_for_handler", few, apart=True),
        _low_load(RETRY, "wait_for_retry", few),
    ]


def _hand(name: str, function: str, messages: int) -> Case:
    sizes = {"messages": messages}
    module = "benchmarks.sqlite.hand"
    return Case(name=name, prepare=f"{module}:fill", preparation=sizes, run=f"{module}:{function}", arguments=sizes)


def _ours(name: str, function: str, messages: int, *, waiting: int | None = None, **arguments: Any) -> Case:
    module = "benchmarks.sqlite.redrive"
    return Case(
        name=name,
        prepare=f"{module}:fill",
        preparation={"messages": waiting or messages},
        run=f"{module}:{function}",
        arguments={"messages": messages, **arguments},
        keeps_file=waiting is not None,
    )


def _low_load(name: str, function: str, messages: int, **arguments: Any) -> Case:
    return Case(name=name, run=f"benchmarks.sqlite.redrive:{function}", arguments={"messages": messages, **arguments})
