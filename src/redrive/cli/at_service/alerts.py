"""Alerts, at a service: the notifiers are its own."""

from collections.abc import Sequence

from msgspec import convert

from redrive.cli.at_service.client import Client
from redrive.cli.at_service.reading import Said
from redrive.triage.alerts import Tried


class AlertsThere:
    """`clerk.Alerts` at a service."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def test(self) -> Sequence[Tried]:
        return await self._client.post("/alerts/test", read=lambda said: [_tried(one) for one in said])


def _tried(said: Said) -> Tried:
    return convert([said["notifier"], said["place"], said["why"]], Tried)
