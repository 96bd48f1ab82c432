"""What letters have in common: the first question about an incident."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from redrive.core.letter import DeadLetter

SHARE = 0.9
_LONGEST = 80
_OWN = (
    *("queue", "group", "broker", "handler", "app_version", "node", "reason", "error_code", "content_type"),
    *("user_id", "tenant_id", "task_type"),
)


@dataclass(frozen=True, slots=True)
class Likeness:
    """One thing that most of the letters looked at share: a field of theirs, of context or payload, the hour."""

    field: str
    value: str
    count: int
    of: int


def in_common(letters: Sequence[DeadLetter], *, share: float = SHARE) -> list[Likeness]:
    """What at least this share of the letters have in common, the most widely shared first. One letter shares nothing.

    Of a payload that is a JSON object the plain values at its top are looked at, never longer texts.
    """
    if len(letters) < 2:  # noqa: PLR2004 - one letter has nothing in common with itself
        return []
    seen = Counter(fact for letter in letters for fact in set(_facts(letter)))
    found = [
        Likeness(field, value, count, len(letters))
        for (field, value), count in seen.items()
        if count >= share * len(letters) and count > 1
    ]
    return sorted(found, key=lambda one: (-one.count, one.field, one.value))


def _facts(letter: DeadLetter) -> Iterator[tuple[str, str]]:
    for name in _OWN:
        if value := getattr(letter, name):
            yield name, str(value)
    yield "hour", f"{letter.failed_at:%Y-%m-%d %H}:00 UTC"
    yield from _plain("context", letter.context)
    yield from _plain("payload", _object_in(letter.payload))


def _plain(place: str, members: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in members.items():
        text = value if isinstance(value, str) else json.dumps(value) if isinstance(value, bool | int | float) else ""
        if 0 < len(text) <= _LONGEST:
            yield f"{place}.{name}", text


def _object_in(payload: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(payload or b"")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
