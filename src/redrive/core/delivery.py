"""A delivery: one handing-over of a message by the broker, and the thing that is settled."""

from datetime import datetime
from typing import Any, NamedTuple

from redrive.core.message import Message


class Delivery(NamedTuple):
    """One message in the hands of one worker, until it is settled, released or lost.

    `failures` spend the retry policy, `crashes` spend the crash limit; deliveries and releases spend nothing.
    `trail` is the encoded list of earlier attempts (`core.attempt.load_trail`), decoded only on failure.
    `token` belongs to the adapter: it fences this handing-over against every other one. `due_at` is when a message
    that was scheduled or is tried again was to be handed out; None for one that had nothing to wait for.
    """

    message: Message
    group: str
    received_at: datetime
    failures: int = 0
    crashes: int = 0
    generation: int = 0
    letter_id: str | None = None
    attempts_allowed: int | None = None
    first_attempt_at: datetime | None = None
    trail: bytes = b""
    alone: bool = False
    deadline: datetime | None = None
    token: Any = None
    due_at: datetime | None = None

    @property
    def attempt(self) -> int:
        """The number of the run that this delivery is for, from 1 in each generation."""
        return self.failures + self.crashes + 1
