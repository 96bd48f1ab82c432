"""The marks of a redriven message, as headers: which letter it is, and for whom that counts.

Brokers with fields of their own for them write none. Only `send_back` and `settle` write marks; `publish` strips them.
"""

import re
from typing import NamedTuple

from redrive.core.message import RESERVED_PREFIX, Headers
from redrive.core.redrive import SendBack

LETTER = "rd-letter"
GENERATION = "rd-generation"
QUEUE = "rd-queue"
GROUP = "rd-group"  # absent from what goes to the queue itself: no group of ours may speak for it
ORIGIN = "rd-origin"
ATTEMPTS = "rd-attempts"  # 1 for a canary

_NUMBER = re.compile(r"[0-9]{1,9}")


class Marks(NamedTuple):
    """What the marks say. An empty `origin` leaves the message the one it has."""

    letter_id: str
    generation: int
    attempts_allowed: int | None = None
    origin: str = ""


def write_marks(item: SendBack) -> Headers:
    """The marks of a letter that is sent back, to stand beside its own headers; none if it is not to be marked."""
    if not item.marked:
        return ()
    marks = {
        LETTER: item.letter_id,
        GENERATION: str(item.generation),
        QUEUE: item.queue,
        GROUP: item.group,
        ORIGIN: item.origin,
        ATTEMPTS: None if item.attempts_allowed is None else str(item.attempts_allowed),
    }
    return tuple((name, text.encode("utf-8", "surrogatepass")) for name, text in marks.items() if text)


def read_marks(headers: Headers, *, queue: str, group: str = "") -> Marks | None:
    """What `write_marks` wrote for this queue and group; without a group, for a consumer that has none.

    None for whatever else stands there: marks for others, forged or damaged ones, no marks at all.
    """
    raw = {name: value for name, value in reversed(headers) if name.startswith(RESERVED_PREFIX)}
    if not raw:
        return None
    try:
        found = {name: value.decode("utf-8", "surrogatepass") for name, value in raw.items()}
    except UnicodeDecodeError:
        return None
    letter_id, generation = found.get(LETTER), _count(found.get(GENERATION))
    if not letter_id or generation is None or found.get(QUEUE) != queue or found.get(GROUP, "") != group:
        return None
    return Marks(letter_id, generation, _count(found.get(ATTEMPTS)), found.get(ORIGIN, ""))


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None
