"""Somebody who is told of alerts, for tests."""

from collections.abc import Sequence
from datetime import timedelta

from redrive.core.alert import Alert
from redrive.core.errors import NotifierError


class Hearing:
    """A notifier that keeps what it hears; with a `why` it takes nothing, and says so."""

    at_once = 100
    repeat_every: timedelta | None = timedelta(hours=4)

    def __init__(self, name: str, place: str, *, why: str = "") -> None:
        self.name = name
        self.place = place
        self.why = why
        self.heard: list[Alert] = []

    async def tell(self, alerts: Sequence[Alert]) -> None:
        if self.why:
            raise NotifierError(self.why)
        self.heard += alerts

    async def aclose(self) -> None:
        pass
