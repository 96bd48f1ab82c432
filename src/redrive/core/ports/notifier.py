"""The port for telling people, and machines that call them."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from redrive.core.alert import Alert


class Notifier(Protocol):
    """Somebody who is told of alerts. Several may be told of the same ones, each at its own pace."""

    @property
    def name(self) -> str:
        """What kind of notifier it is, in metrics and logs."""
        ...

    @property
    def repeat_every(self) -> timedelta | None:
        """How often it wants to hear of an alert that goes on; None for once."""
        ...

    async def tell(self, alerts: Sequence[Alert]) -> None:
        """Tell of alerts that fire, and of those that have ended, all in few calls; the same ones may be told again.

        Raises `NotifierError` if not all of them were taken: then all of them are told again later.
        """
        ...

    async def aclose(self) -> None:
        """Close connections. Idempotent."""
        ...
