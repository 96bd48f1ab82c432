"""What alerting has to remember when its process is gone: what fires, who was told, what was counted."""

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import ValidationError, convert

from redrive.core.alert import Alert


class Told(NamedTuple):
    """An alert as a notifier was told of it last, and when."""

    alert: Alert
    at: datetime


class Sample(NamedTuple):
    """How many letters of each queue had died by then, in the hour of that instant and the one before it."""

    at: datetime
    deaths: dict[str, int]


@dataclass(slots=True)
class AlertMemo:
    """`began` is since when each alert fires, by its spell; `told` is by the place of a notifier, `samples` by rule."""

    began: dict[str, datetime] = field(default_factory=dict)
    told: dict[str, dict[str, Told]] = field(default_factory=dict)
    samples: dict[str, list[Sample]] = field(default_factory=dict)

    @classmethod
    def read(cls, body: bytes) -> "AlertMemo":
        """The memo that was written so; an empty one for what another version may have written."""
        try:
            return convert(json.loads(body), cls) if body else cls()
        except (ValueError, ValidationError):
            return cls()

    def written(self) -> bytes:
        """As it is kept: JSON in ASCII, whatever names are in it."""
        return json.dumps(asdict(self), default=_said, separators=(",", ":")).encode()


def _said(value: Any) -> str:
    if not isinstance(value, datetime):
        raise TypeError(value)
    return value.isoformat()
