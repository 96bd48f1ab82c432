"""Alerts over HTTP: who is told of them, and whether they hear it."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends

from redrive.api.auth import PermittedRoute, ServiceOf, allowed
from redrive.api.examples import shown
from redrive.triage import alerts
from redrive.triage.desk import Desk

router = APIRouter(prefix="/alerts", tags=["alerts"], route_class=PermittedRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedNotifier:
    """A notifier that was sent a test, without what is secret of its URL; `why` says why it did not take it."""

    notifier: str
    place: str
    taken: bool
    why: str


_TRIED: dict[str, Any] = {
    "notifier": "webhook",
    "place": "https://hooks.slack.com/*** (1f0c2d3e)",
    "taken": False,
    "why": "hooks.slack.com answered 404: no_service",
}


@router.post("/test", responses=shown([_TRIED]))
async def test_alerts(desk: Annotated[Desk, Depends(allowed("notifiers"))], service: ServiceOf) -> list[TriedNotifier]:
    """Send every notifier an alert that says it is a test; none if no notifier is configured."""
    return [
        TriedNotifier(notifier=one.notifier, place=one.place, taken=not one.why, why=one.why)
        for one in await alerts.test(desk, service.notifiers)
    ]
