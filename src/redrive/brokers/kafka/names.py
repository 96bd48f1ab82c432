"""What belongs to a queue on Kafka is called after it, with two dots, which no queue's own name may have."""

import re
from typing import Final

from redrive.brokers.names import check_names
from redrive.core.errors import ConfigError

LEDGER: Final = "redrive..ledger"
ALIVE: Final = "redrive..alive"
ALWAYS_THERE: Final = "__consumer_offsets"
"""A topic that a cluster has as soon as somebody reads: asking for it tells about the cluster, and begins nothing."""
LONGEST: Final = 249
_PRIVATE: Final = ".."
_LANE: Final = ".lane"
_BOOK: Final = ".book"
_LEGAL: Final = re.compile(r"[A-Za-z0-9._-]+")


def check_topic(*, queue: str, group: str | None = None) -> None:
    """Raise `ConfigError` with every mistake in these names: Kafka is stricter than others."""
    check_names(queue=queue, group=group)
    mistakes = [
        f"{kind}: Kafka takes letters, digits and . _ - only, got {name!r}"
        for kind, name in (("queue", queue), ("group", group))
        if name is not None and _LEGAL.fullmatch(name) is None
    ]
    if group is not None and len(lane_of(queue, group)) > LONGEST:
        mistakes.append(f"queue and group: expected at most {LONGEST - 7} characters in both, got {queue!r}, {group!r}")
    if mistakes:
        raise ConfigError(mistakes)


def group_id(queue: str, group: str) -> str:
    """The consumer group on Kafka: of one queue only, so that a rebalance of one does not stop the others."""
    return f"{queue}{_PRIVATE}{group}"


def group_reading(topic: str, *, queue: str, group: str) -> str:
    """The consumer group of a queue's topic, or of its lane: each divides its partitions evenly."""
    return group_id(queue, group) if topic == queue else topic


def lane_of(queue: str, group: str) -> str:
    """The topic in which a group's retries wait, and what is sent back to it."""
    return f"{queue}{_PRIVATE}{group}{_LANE}"


def book_of(queue: str, group: str) -> str:
    """The topic that says whether a group is paused, and keeps its suspects and what it holds."""
    return f"{queue}{_PRIVATE}{group}{_BOOK}"


def is_private(topic: str) -> bool:
    """Whether a topic is no queue: Kafka's own, or ours beside a queue."""
    return _PRIVATE in topic or topic.startswith("__")


def group_of(topic: str) -> tuple[str, str] | None:
    """The queue and the group of a lane; None for any other topic."""
    queue, dots, rest = topic.partition(_PRIVATE)
    return (queue, rest.removesuffix(_LANE)) if dots and rest.endswith(_LANE) else None
