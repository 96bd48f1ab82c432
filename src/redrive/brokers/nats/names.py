"""What queues, groups and what belongs to them are called on NATS: subjects, streams, consumers and keys."""

import re
from functools import lru_cache
from typing import Final

from redrive.brokers.names import check_names
from redrive.core.errors import ConfigError

BUCKET: Final = "redrive"
BUCKET_STREAM: Final = f"KV_{BUCKET}"
KEYS: Final = f"$KV.{BUCKET}"
PRIVATE: Final = "rd"
"""The first token of subjects that are ours: a queue's name may not begin with it."""

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST: Final = 200


def check_subject(*, queue: str, group: str | None = None) -> None:
    """Raise `ConfigError` with every mistake in these names: a queue is a subject without wildcards."""
    mistakes: list[str] = []
    try:
        check_names(queue=queue, group=group)
    except ConfigError as error:
        mistakes += error.mistakes
    else:
        if queue.endswith(".") or queue.startswith((".", f"{PRIVATE}.")):
            mistakes.append(f"queue: expected a subject that neither ends in a dot nor begins with rd., got {queue!r}")
        if len(token(queue)) + len(token(group or "")) > _LONGEST:
            mistakes.append(
                f"queue and group: expected at most {_LONGEST} characters in both, got {queue!r}, {group!r}"
            )
    if mistakes:
        raise ConfigError(mistakes)


@lru_cache(maxsize=512)  # of queues and groups it is asked for every message
def token(name: str) -> str:
    """A name as one token of a subject, and a part of a key; no two names have the same."""
    return _UNSAFE.sub(lambda found: f"={ord(found[0]):02X}", name)


def stream_name(queue: str) -> str:
    """What we call the stream of a queue, unless another queue's is called so."""
    return _UNSAFE.sub("_", queue)


def consumer_name(queue: str, group: str) -> str:
    """The durable consumer of a group: one stream may hold many queues."""
    return f"{token(group)}-{token(queue)}"


def lane_of(queue: str, group: str) -> str:
    """The subject on which letters go back to one group."""
    return f"{PRIVATE}.lane.{token(queue)}.{token(group)}"


def lanes_of(queue: str) -> str:
    """The lanes of all groups."""
    return f"{PRIVATE}.lane.{token(queue)}.*"


def later_of(queue: str, name: str = "*") -> str:
    """The subject on which a delayed message waits for the server to publish it."""
    return f"{PRIVATE}.later.{token(queue)}.{name}"


def part_of(queue: str, name: str = "*") -> str:
    """The subject of a body that did not fit beside its headers."""
    return f"{PRIVATE}.part.{token(queue)}.{name}"


def strict_of(dlq: str, letter_id: str, generation: int) -> str:
    """The subject of one letter in one generation, where the server lets no second one in."""
    return f"{dlq}.{token(letter_id)}.{generation}"


def covers(pattern: str, subject: str) -> bool:
    """Whether a stream's subject, which may have wildcards, takes what is published on another.

    >>> covers("orders.>", "orders.eu.dlq"), covers("orders.*", "orders.eu.dlq"), covers("orders", "orders")
    (True, False, True)
    """
    ours, theirs = pattern.split("."), subject.split(".")
    for index, part in enumerate(ours):
        if part == ">":
            return len(theirs) > index
        if index >= len(theirs) or part not in ("*", theirs[index]):
            return False
    return len(ours) == len(theirs)
