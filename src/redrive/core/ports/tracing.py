"""The port for traces: what happens to a message, seen beside what happened before it and elsewhere."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from redrive.core.delivery import Delivery
from redrive.core.message import Headers


class Tracing(Protocol):
    """Makes a span of everything that is done with messages. Safe from any thread and event loop."""

    def attempt(self, deliveries: Sequence[Delivery]) -> AbstractContextManager[object]:
        """Around one run of a handler, on one message or on a batch. What the block raises comes through."""
        ...

    def publish(
        self, queue: str, headers: Headers, *, answers: Delivery | None = None
    ) -> AbstractContextManager[Headers]:
        """Around one publishing; gives the headers to send, by which whoever handles the message finds this span.

        What a handler returned `answers` a delivery, and belongs to the trace of its message, as its attempts do.
        """
        ...
