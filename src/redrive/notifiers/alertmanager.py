"""Prometheus' Alertmanager, by its API v2: it groups, silences, and calls people."""

import asyncio
import json
import ssl
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final

from redrive.core.alert import Alert, Rule
from redrive.core.errors import ConfigError, NotifierError
from redrive.core.excerpt import excerpt
from redrive.core.ports import Clock
from redrive.core.printable import printable
from redrive.core.url import mask_url
from redrive.notifiers.address import Address

NAMES: Final = {
    Rule.NEW_INCIDENT: "RedriveIncident",
    Rule.RELAPSE: "RedriveIncident",
    Rule.GROWTH: "RedriveGrowth",
    Rule.THRESHOLD: "RedriveThreshold",
    Rule.SIZE: "RedriveSize",
    Rule.AGE: "RedriveAge",
    Rule.TEST: "RedriveTest",
}
"""What alerts are called there, by their rule. An incident keeps its name when it relapses."""
REPEAT_EVERY: Final = timedelta(minutes=1)
GOES_ON: Final = timedelta(minutes=5)
"""How long an alert goes on by itself: if nobody speaks for it any more, it ends then."""

_BATCH: Final = 200
_PATIENCE: Final = 5.0  # seconds
_LONGEST: Final = 256  # bytes of a label
_QUEUES: Final = 20  # named, at most


class AlertmanagerNotifier:
    """One Alertmanager; of a cluster of them, each is told by a notifier of its own.

    An incident is one alert, and so is a queue in which a rule is broken. Its labels stay the same as long as it goes
    on: `alertname`, `incident` and `error_type` of an incident, `queue`, and those given. Telling twice is telling
    once; it repeats itself what goes on. Raises `ConfigError` for a URL that is none.
    """

    name = "alertmanager"
    repeat_every = REPEAT_EVERY
    at_once = _BATCH

    def __init__(self, url: str, *, labels: Mapping[str, str] | None = None, clock: Clock) -> None:
        try:
            there = Address.of(url)
        except ValueError:
            raise ConfigError(f"{_EXPECTED}, got {mask_url(url)!r}") from None
        if "?" in there.target:
            raise ConfigError(f"{_EXPECTED}, got {mask_url(url)!r}")
        self.place = mask_url(url)
        self._there = there
        self._path = f"{there.target.rstrip('/')}/api/v2/alerts"
        self._headers = {"Content-Type": "application/json", **there.login}
        self._labels = dict(labels or {})
        self._clock = clock

    async def tell(self, alerts: Sequence[Alert]) -> None:
        body = json.dumps([self._told(alert) for alert in alerts]).encode()
        await asyncio.to_thread(self._post, body)

    async def aclose(self) -> None:
        """Nothing stays open between two calls."""

    def _told(self, alert: Alert) -> dict[str, Any]:
        """As the API wants it. An alert that ended before it began would be refused."""
        ends_at = self._clock.now() + GOES_ON if alert.ended_at is None else max(alert.ended_at, alert.began_at)
        own = {
            "incident": alert.incident_id,
            "error_type": alert.error_type,
            "queue": alert.queue if alert.queues else "",
        }
        own = {name: _value(text) for name, text in own.items() if text}
        counted = f"{alert.open:,} of {alert.total:,} letters are open; the last died at {_at(alert.last_at)}"
        return {
            "labels": {"alertname": NAMES[alert.rule], **self._labels, **own},
            "annotations": {
                "summary": _value(alert.headline),
                "description": counted if alert.rule.is_of_incident else _value(alert.said),
                "rule": alert.rule.value,
                "queues": ", ".join(_value(queue) for queue in alert.queues[:_QUEUES]),
                **({"link": alert.link} if alert.link else {}),
            },
            "startsAt": alert.began_at.isoformat(),
            "endsAt": ends_at.isoformat(),
            "generatorURL": alert.link,
        }

    def _post(self, body: bytes) -> None:
        connection = self._connection()
        try:
            connection.request("POST", self._path, body, self._headers)
            answer = connection.getresponse()
            said = answer.read(1000).decode(errors="replace").strip()
        except (OSError, HTTPException) as error:
            raise NotifierError(f"no answer from {self._there.host}: {type(error).__name__}: {error}") from error
        finally:
            connection.close()
        if answer.status != _TAKEN:
            raise NotifierError(f"{self._there.host} answered {answer.status} {answer.reason}: {printable(said)}")

    def _connection(self) -> HTTPConnection:
        if self._there.scheme == "https":
            context = ssl.create_default_context()
            return HTTPSConnection(self._there.host, self._there.port, timeout=_PATIENCE, context=context)
        return HTTPConnection(self._there.host, self._there.port, timeout=_PATIENCE)


_TAKEN: Final = 200
_EXPECTED: Final = "alerts.alertmanager: expected a URL such as http://127.0.0.1:9093"


def _at(instant: datetime) -> str:
    return instant.isoformat(sep=" ", timespec="seconds")


def _value(text: str) -> str:
    """Text that a label can hold, whoever wrote it."""
    return excerpt(printable(text), limit=_LONGEST)
