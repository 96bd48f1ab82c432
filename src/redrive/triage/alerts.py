"""Alerts: who is told, and whether they hear it."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from redrive.core.alert import Alert, Rule
from redrive.core.ports import Notifier
from redrive.triage.desk import Desk


class Tried(NamedTuple):
    """A notifier that was sent a test. `why` says why it did not take it; empty if it did."""

    notifier: str
    place: str
    why: str


async def test(desk: Desk, notifiers: Sequence[Notifier]) -> Sequence[Tried]:
    """Tell every notifier of an alert that is none, side by side; what comes of it is put on record. Raises nothing."""
    now = desk.clock.now()
    said = f"{desk.who} wants to know whether this is heard; nothing has happened"
    alert = Alert(rule=Rule.TEST, said=said, began_at=now, last_at=now)
    found = await asyncio.gather(*(_tried(notifier, alert) for notifier in notifiers))
    heard = {one.place: one.why or "taken" for one in found}
    await desk.store.record(desk.act("alerts.test", notifiers=heard))
    return found


async def _tried(notifier: Notifier, alert: Alert) -> Tried:
    try:
        await notifier.tell([alert])
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        return Tried(notifier.name, notifier.place, str(error) or type(error).__name__)
    return Tried(notifier.name, notifier.place, "")
