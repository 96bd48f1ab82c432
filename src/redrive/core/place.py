"""Where dead letters go: a queue of their own, one for many, or nowhere on purpose; and what belongs to a queue."""

import re
from dataclasses import dataclass
from typing import Literal

from redrive.core.errors import ConfigError

DLQ = "{queue}.dlq"
OUTCOMES = "{queue}.outcomes"
"""The usual patterns; a broker whose users expect others says so in its `Capabilities`."""

COLLECTORS = "redrive"
"""The group in which collectors read DLQs and outcomes queues."""


_TAG = re.compile(r"\{[^{}]+\}")
_PLACEHOLDERS = frozenset({"{group}", "{name}", "{source}", "{stream}", "{subject}", "{topic}"})


def named(pattern: str, queue: str) -> str:
    """What a pattern calls the DLQ or the outcomes queue of this queue.

    Braces around `{queue}` keep a queue and what belongs to it together in a Redis cluster; a queue whose name has some
    already needs no more.
    """
    return (_untagged(pattern) if _TAG.search(queue) else pattern).replace("{queue}", queue)


def queue_of(pattern: str, name: str) -> str | None:
    """The queue whose DLQ or outcomes queue a pattern calls by this name; None if it calls none so."""
    for form in (pattern, _untagged(pattern)):
        before, _, after = form.partition("{queue}")
        queue = name.removeprefix(before).removesuffix(after)
        if queue and named(pattern, queue) == name:
            return queue
    return None


def _untagged(pattern: str) -> str:
    return pattern.replace("{{queue}}", "{queue}")


@dataclass(frozen=True, slots=True)
class DeadLetterPlace:
    """The DLQ of a consumer.

    `name` is a pattern (`{queue}` stands for the queue's name) or one fixed name for many queues; None is the
    broker's default. With `enabled=False`, `off` must say what becomes of a message that is given up: `hold` keeps
    it without further attempts until it is freed, `drop` acks it with metric, log and hash. `on_failure` says what
    to do when the letter cannot be written: `hold` keeps the message unsettled and tries again, `drop` acks it.
    """

    name: str | None = None
    enabled: bool = True
    off: Literal["hold", "drop"] | None = None
    on_failure: Literal["hold", "drop"] = "hold"

    def __post_init__(self) -> None:
        mistakes = []
        if not self.enabled and self.off not in ("hold", "drop"):
            mistakes.append(f"dlq.off: with dlq.enabled = false expected 'hold' or 'drop', got {self.off!r}")
        if self.enabled and self.off is not None:
            mistakes.append(f"dlq.off: needs dlq.enabled = false, got {self.off!r} with the DLQ on")
        if self.on_failure not in ("hold", "drop"):
            mistakes.append(f"dlq.on_failure: expected 'hold' or 'drop', got {self.on_failure!r}")
        if self.name is not None:
            mistakes.extend(_name_mistakes(self.name))
        if mistakes:
            raise ConfigError(mistakes)

    def dlq_of(self, queue: str, *, default: str) -> str:
        """The DLQ's name for this queue; `default` is the adapter's own pattern."""
        return named(self.name or default, queue)


def _name_mistakes(name: str) -> list[str]:
    rest = _untagged(name).replace("{queue}", "q")
    tag = _TAG.search(rest)
    if tag is not None and tag[0] not in _PLACEHOLDERS:
        rest = rest.replace(tag[0], "t", 1)
    if not rest or name == "{queue}" or "{" in rest or "}" in rest or not rest.isprintable() or " " in rest:
        return [f"dlq.name: expected a queue name, or a pattern with {{queue}} and something more, got {name!r}"]
    return []
