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
    def place(self) -> str:
        """Which one it is: the same after a restart, different from all others, and without secrets."""
        ...

    @property
    def repeat_every(self) -> timedelta | None:
        """How often it wants to hear of an alert that goes on; None for once."""
        ...

    @property
    def at_once(self) -> int:
        """How many alerts it takes in one call."""
        ...

    async def tell(self, alerts: Sequence[Alert]) -> None:
        """Tell of alerts that fire, and of those that have ended, in one request; the same ones may be told again.

        Raises `NotifierError` if they were not taken: then they are told again later.
        """
        ...

    async def aclose(self) -> None:
        """Close connections. Idempotent."""
        ...
