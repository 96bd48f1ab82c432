"""An alert: what is told to people about an incident, in time."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

SEVERAL: Final = "several"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An incident as it is told: it goes on until `ended_at` is known.

    `open` of its `total` letters are neither resolved nor discarded. `began_at` is when the letter died that opened it
    this time. `link` is where people look at it, if anywhere. There is no text of an error in it: that may hold what is
    none of the receivers' business.
    """

    incident_id: str
    error_type: str
    queues: tuple[str, ...]
    open: int
    total: int
    began_at: datetime
    last_at: datetime
    ended_at: datetime | None = None
    link: str = ""

    @property
    def queue(self) -> str:
        """The queue, if it is one."""
        return self.queues[0] if len(self.queues) == 1 else SEVERAL
