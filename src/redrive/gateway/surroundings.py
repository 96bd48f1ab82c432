"""What a gateway needs of the outside, beside the network: time, chance, and somebody to tell."""

from dataclasses import dataclass
from random import Random

from redrive.core.errors import MissingExtra
from redrive.core.event import Event
from redrive.core.ports import Clock, EventSink
from redrive.core.ports.answers import Answers
from redrive.core.ports.tracing import Tracing
from redrive.gateway.alarms import Alarms
from redrive.gateway.transport import Transport


@dataclass(frozen=True, slots=True)
class Outside:
    """What a gateway takes from the outside where nothing else is said. Tests say otherwise.

    `answers` is where a durable gateway keeps them, if not beside its broker's queues. With `tracing` there is a span
    for each request that is accepted, and for each attempt.
    """

    transport: Transport | None = None
    clock: Clock | None = None
    random: Random | None = None
    sink: EventSink | None = None
    answers: Answers | None = None
    tracing: Tracing | None = None


def default_transport() -> Transport:
    """The transport where none is given. Raises `MissingExtra`."""
    try:
        from redrive.gateway.aiohttp_transport import AiohttpTransport  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("the gateway", extra="gateway") from error
    return AiohttpTransport()


class NobodyListens:
    """An `EventSink` that forgets."""

    def emit(self, event: Event) -> None:
        """Take note of nothing."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Shared by all parts of one gateway."""

    clock: Clock
    alarms: Alarms
    random: Random
    sink: EventSink
    tracing: Tracing | None = None
