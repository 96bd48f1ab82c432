"""Alerts as Slack and those that take what it takes want them: a text, and beside it the facts of each alert."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from redrive.core.alert import Alert, Rule
from redrive.core.excerpt import excerpt
from redrive.core.printable import printable

_LONGEST: Final = 256  # bytes of a value
_QUEUES: Final = 20  # named, at most
_FIRES, _ENDED, _TRIED = "danger", "good", "#439fe0"

TITLES: Final = {
    Rule.NEW_INCIDENT: "New incident",
    Rule.RELAPSE: "Relapse",
    Rule.GROWTH: "Letters come fast",
    Rule.THRESHOLD: "Many letters",
    Rule.SIZE: "Letters pile up",
    Rule.AGE: "A letter was forgotten",
    Rule.TEST: "Test",
}


def slack_body(alerts: Sequence[Alert], *, labels: Mapping[str, str]) -> bytes:
    """The body of one message about all of them."""
    said = {
        "text": "\n".join(_line(alert) for alert in alerts),
        "attachments": [_attachment(alert, labels) for alert in alerts],
        "mrkdwn": False,
        "unfurl_links": False,
    }
    return json.dumps(said).encode()


def _line(alert: Alert) -> str:
    ended = "Ended: " if alert.ended_at is not None else ""
    return _safe(f"{ended}{TITLES[alert.rule]}: {alert.headline}")


def _attachment(alert: Alert, labels: Mapping[str, str]) -> dict[str, Any]:
    is_over = alert.ended_at is not None
    facts = {
        "state": "resolved" if is_over else "firing",
        "rule": alert.rule.value,
        "incident": alert.incident_id,
        "error_type": alert.error_type,
        "queue": ", ".join(alert.queues[:_QUEUES]),
        "letters": _letters(alert),
        "since": alert.began_at.isoformat(timespec="seconds"),
        **({"until": alert.ended_at.isoformat(timespec="seconds")} if alert.ended_at is not None else {}),
        **labels,
    }
    return {
        "fallback": _line(alert),
        "color": _TRIED if alert.rule is Rule.TEST else _ENDED if is_over else _FIRES,
        "title": _safe(alert.headline),
        **({"title_link": alert.link} if alert.link else {}),
        "fields": [{"title": name, "value": _safe(value), "short": True} for name, value in facts.items() if value],
        "ts": int((alert.ended_at or alert.began_at).timestamp()),
    }


def _letters(alert: Alert) -> str:
    if alert.rule is Rule.TEST:
        return ""
    return f"{alert.open:,} open of {alert.total:,}" if alert.rule.is_of_incident else f"{alert.open:,}"


def _safe(text: str) -> str:
    """Text from strangers: it cannot mention anybody, make a link or break the line."""
    shown = excerpt(printable(text), limit=_LONGEST)
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
