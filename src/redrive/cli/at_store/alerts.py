"""Alerts, at a store: the notifiers are those of the settings."""

from collections.abc import Sequence

from redrive.config import load_settings
from redrive.triage import alerts
from redrive.triage.alerts import Tried
from redrive.triage.desk import Desk


class AlertsHere:
    """`clerk.Alerts` at a desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def test(self) -> Sequence[Tried]:
        from redrive.wiring import notifiers

        return await alerts.test(self._desk, notifiers(load_settings().alerts, clock=self._desk.clock))
