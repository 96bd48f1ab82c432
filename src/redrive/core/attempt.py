"""An attempt: one run of the handler that did not end well. Their trail travels with the message."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from redrive.core.excerpt import excerpt

KEPT = 16
KEPT_IN_ALL = 96  # by a store, over all generations
_ROOM = 72  # for type, code, node and message: with names and times that makes about 256 bytes
_LEAST = 24


@dataclass(frozen=True, slots=True)
class Attempt:
    """One failed or crashed run of a handler, numbered from 1 in each generation."""

    number: int
    started_at: datetime
    ended_at: datetime
    error_type: str
    error_message: str = ""
    error_code: str | None = None
    crash: bool = False
    node: str = ""
    generation: int = 0

    def shortened(self) -> "Attempt":
        """The same attempt in about 256 bytes."""
        room = _ROOM - len(self.error_type) - len(self.error_code or "") - len(self.node)
        return self.told(excerpt(self.error_message, limit=max(_LEAST, room)))

    def told(self, error_message: str) -> "Attempt":
        """The same attempt with another text for its error."""
        return self if error_message == self.error_message else replace(self, error_message=error_message)


Trail = tuple[Attempt, ...]


def extend_trail(trail: Trail, attempt: Attempt) -> Trail:
    """The trail with one more attempt: the first and the latest are kept, only the last one in full."""
    earlier = tuple(old.shortened() for old in trail)
    if len(earlier) >= KEPT:
        earlier = (earlier[0], *earlier[len(earlier) - KEPT + 2 :])
    return (*earlier, attempt)


def join_trails(one: Trail, other: Trail) -> Trail:
    """The attempts of both in order, each once: the trail of a letter over its generations, the first and latest kept.

    The same whatever the order in which trails are joined, as long as nothing has to be left out.
    """
    together = {(attempt.generation, attempt.number, attempt.started_at): attempt for attempt in (*one, *other)}
    joined = tuple(together[place] for place in sorted(together))
    return joined if len(joined) <= KEPT_IN_ALL else (joined[0], *joined[len(joined) - KEPT_IN_ALL + 1 :])


def dump_trail(trail: Trail) -> bytes:
    """The trail as JSON bytes, to be kept beside the message."""
    return json.dumps(to_rows(trail), separators=(",", ":")).encode()


def load_trail(raw: bytes | str | None) -> Trail:
    """The trail from its JSON bytes; what cannot be read is left out rather than an error on the dead path."""
    if not raw:
        return ()
    try:
        return from_rows(json.loads(raw))
    except (ValueError, RecursionError):
        return ()


def to_rows(trail: Trail) -> list[dict[str, Any]]:
    """The trail as plain JSON values, empty ones left out."""
    return [_row(attempt) for attempt in trail]


def from_rows(rows: Any) -> Trail:
    """The trail from plain JSON values. A row that is none is left out; a name from a later version is passed over."""
    found = []
    for row in rows if isinstance(rows, list) else ():
        try:
            found.append(_attempt(row))
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError):
            continue
    return tuple(found)


def _row(attempt: Attempt) -> dict[str, Any]:
    row: dict[str, Any] = {
        "number": attempt.number,
        "started_at": attempt.started_at.isoformat(),
        "ended_at": attempt.ended_at.isoformat(),
        "error_type": attempt.error_type,
    }
    if attempt.error_message:
        row["error_message"] = attempt.error_message
    if attempt.error_code is not None:
        row["error_code"] = attempt.error_code
    if attempt.crash:
        row["crash"] = True
    if attempt.node:
        row["node"] = attempt.node
    if attempt.generation:
        row["generation"] = attempt.generation
    return row


def _attempt(row: Mapping[str, Any]) -> Attempt:
    code = row.get("error_code")
    return Attempt(
        number=int(row["number"]),
        started_at=_instant(row["started_at"]),
        ended_at=_instant(row["ended_at"]),
        error_type=str(row["error_type"]),
        error_message=str(row.get("error_message", "")),
        error_code=None if code is None else str(code),
        crash=bool(row.get("crash")),
        node=str(row.get("node", "")),
        generation=int(row.get("generation", 0)),
    )


def _instant(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
