"""What is measured on Redis, but for the peers."""

from collections.abc import Collection

from benchmarks.beside import draining, failing
from benchmarks.runs import Case

PARTS = ("healthy", "failing", "latency", "memory", "peers")

HAND = "hand-written: read 500, handle, ack them in one call"
OURS = "Redrive, handler takes bytes"
TYPED = "Redrive, handler takes a dict"
TRACED = "Redrive, handler takes bytes, a span for every attempt"

HAND_FAILING = "hand-written: added again at once or to the DLQ, one MULTI/EXEC per 500"
HAND_DUE = "hand-written: due index and attempts kept in Redis, one MULTI/EXEC per 500"
OURS_FAILING = "Redrive, log level error"
OURS_FAILING_ALOUD = "Redrive, logs as they come"

HAND_WAITING = "bare loop: XREADGROUP with BLOCK"
OURS_WAITING = "Redrive"
RETRY = "Redrive: retry after 50 ms, how late"

MEMORY = "Redrive, a long backlog"


def backlog(scale: float) -> int:
    """How many messages wait where memory is watched."""
    return max(round(1_000_000 * scale), 20)


def cases(parts: Collection[str], *, scale: float, loop: str) -> list[Case]:
    """The cases of these parts; `scale` 1 is the size that is written down. The peers need the healthy ones too."""
    many, fewer, few = (max(round(size * scale), 20) for size in (200_000, 100_000, 250))
    found: list[Case] = []
    if {"healthy", "peers"} & {*parts}:
        found += [
            draining("redis", HAND, "hand:drain", many, loop=loop),
            draining("redis", OURS, "redrive:drain", many, loop=loop),
            draining("redis", TYPED, "redrive:drain_typed", many, loop=loop),
            draining("redis", TRACED, "traced:drain", fewer, loop=loop),
        ]
    if "failing" in parts:
        found += [
            failing("redis", HAND_FAILING, "hand:drain_failing", fewer, loop=loop),
            failing("redis", HAND_DUE, "hand_due:drain_failing", fewer, loop=loop),
            failing("redis", OURS_FAILING, "redrive:drain_failing", fewer, loop=loop, log_level="error"),
            failing("redis", OURS_FAILING_ALOUD, "redrive:drain_failing", fewer, loop=loop, log_level="info"),
        ]
    if "latency" in parts:
        found += [
            _low_load(HAND_WAITING, "hand:wait_for_handler", few, loop=loop),
            _low_load(OURS_WAITING, "redrive:wait_for_handler", few, loop=loop),
            _low_load(RETRY, "redrive:wait_for_retry", few, loop=loop),
        ]
    if "memory" in parts:
        found += [draining("redis", MEMORY, "redrive:drain", backlog(scale), loop=loop)]
    return found


def _low_load(name: str, program: str, messages: int, *, loop: str) -> Case:
    return Case(name=name, run=f"benchmarks.redis.{program}", arguments={"messages": messages, "loop": loop})
