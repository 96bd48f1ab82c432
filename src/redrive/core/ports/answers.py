"""The port for answers to requests: kept for a while, to be picked up by their ids."""

from datetime import timedelta
from typing import Final, Protocol, runtime_checkable

KEPT_FOR: Final = timedelta(hours=24)


class Answers(Protocol):
    """Answers by the ids of their requests, shared by every process. Each is forgotten after its time."""

    async def put(self, request_id: str, answer: bytes) -> None:
        """Keep an answer, durably. Of two for one request the first stays."""
        ...

    async def get(self, request_id: str) -> bytes | None:
        """The answer; None if there is none, or none any more."""
        ...

    async def aclose(self) -> None:
        """Close connections. Idempotent."""
        ...


@runtime_checkable
class KeepsAnswers(Protocol):
    """A broker that has a place for answers beside its queues."""

    def answers(self) -> Answers:
        """The answers kept there. Whoever asked closes them."""
        ...
