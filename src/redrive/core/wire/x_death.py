"""Foreign form on RabbitMQ: the message as it was, and where and why the server dead-lettered it, in `x-death`."""

import json
from collections.abc import Mapping
from typing import Any, Final

from redrive.core.letter import DeadLetter
from redrive.core.message import Headers
from redrive.core.reason import Reason
from redrive.core.wire.record import Entry, Original, from_record

X_DEATH: Final = "x-death"
_SERVERS: Final = ("x-death", "x-first-death-", "x-last-death-", "x-delivery-count", "x-acquired-count")
_WHY: Final[Mapping[str, str]] = {
    "rejected": "a consumer rejected it",
    "expired": "its time to live was over",
    "maxlen": "its queue was full",
    "delivery_limit": "it was delivered too often",
}
_REASONS: Final[Mapping[str, Reason]] = {
    "rejected": Reason.REJECTED,
    "expired": Reason.EXPIRED,
    "delivery_limit": Reason.ATTEMPTS_EXHAUSTED,
}


def has_died(headers: Headers) -> bool:
    """Whether the server wrote them."""
    return any(name == X_DEATH for name, _ in headers)


def from_x_death(headers: Headers, payload: bytes, *, entry: Entry) -> DeadLetter:
    """The letter of the latest death; where and how often it died before stands in the context.

    What the server did not write are the message's own headers.
    """
    deaths = _deaths(dict(headers)[X_DEATH])
    own = tuple(pair for pair in headers if not pair[0].startswith(_SERVERS))
    latest = deaths[0] if deaths else {}
    why = str(latest.get("reason", ""))
    record = {
        "queue": str(latest.get("queue", "")),
        "reason": _REASONS.get(why, Reason.UNKNOWN).value,
        "error_type": f"{X_DEATH}.{why}" if why else X_DEATH,
        "error_message": _WHY.get(why, "the server dead-lettered it"),
        "failed_at": latest.get("time"),
        "retry_count": sum(_count(death) for death in deaths),
        "context": {X_DEATH: deaths} if deaths else {},
    }
    return from_record(record, Original(payload, headers=own), entry=entry)


def _deaths(raw: bytes) -> list[dict[str, Any]]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return []
    return [death for death in found if isinstance(death, dict)] if isinstance(found, list) else []


def _count(death: Mapping[str, Any]) -> int:
    count = death.get("count", 1)
    return count if isinstance(count, int) and count > 0 else 1
