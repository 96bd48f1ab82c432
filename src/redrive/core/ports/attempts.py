"""The port for counting attempts apart from the broker, for brokers that keep no count of their own."""

from collections.abc import Sequence
from typing import Protocol


class AttemptCounter(Protocol):
    """How often messages were tried, by their ids; shared by every worker. A count is forgotten after seven days.

    Counting is the one step that is not the same when repeated: if the answer to `add` was lost, adding again may count
    one attempt twice; never one too few.
    """

    async def add(self, message_id: str) -> int:
        """Count one more attempt; return how many there are with it."""
        ...

    async def get(self, message_id: str) -> int:
        """How many attempts were counted; 0 for a message that is not known."""
        ...

    async def counts(self, message_ids: Sequence[str]) -> Sequence[int]:
        """As `get`, for many at once. Asked for none, it sees whether it could count at all."""
        ...

    async def forget(self, message_id: str) -> None:
        """Begin again at 0. Idempotent."""
        ...

    async def aclose(self) -> None:
        """Close connections. Idempotent."""
        ...
