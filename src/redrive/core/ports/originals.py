"""The port for messages that a queue still holds, whoever has settled them."""

from typing import Protocol, runtime_checkable

from redrive.core.message import Message


@runtime_checkable
class Originals(Protocol):
    """What a broker may be beside a `Broker`, if it finds a message by its id without reading through its queue."""

    async def original(self, queue: str, message_id: str) -> Message | None:
        """The message as it was published; None if the queue no longer holds it, or never did."""
        ...
