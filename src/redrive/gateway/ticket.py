"""A request in the hands of the gateway."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final

from redrive.core.attempt import Attempt, Trail, extend_trail
from redrive.core.delivery import Delivery
from redrive.core.errors import GatewayError
from redrive.core.failure import Failure
from redrive.core.message import Headers, Message
from redrive.gateway.alarms import Alarm
from redrive.gateway.request import LLMRequest
from redrive.gateway.streams import Channel

GROUP: Final = "gateway"

_MILLISECOND: Final = timedelta(milliseconds=1)


class State(Enum):
    """Where a request is. It moves forward, and back to the queue for a retry; `DONE` is the end."""

    QUEUED = "queued"
    IN_FLIGHT = "in_flight"
    WAITING = "waiting"  # for its next attempt, or for the retry allowance
    ENDING = "ending"  # its dead letter is being written
    DONE = "done"


@dataclass(slots=True, eq=False)
class Ticket:
    """One accepted request: what is sent for it, and what has become of it so far."""

    request: LLMRequest
    body: bytes
    tokens: int
    accepted_at: datetime
    deadline_at: datetime | None
    ready_at: datetime
    state: State = State.QUEUED
    failures: int = 0
    trail: Trail = ()
    first_attempt_at: datetime | None = None
    sent_at: datetime | None = None
    delay_ms: float = 0.0
    possibly_executed: bool = False
    deadline_alarm: Alarm | None = None
    due_alarm: Alarm | None = None
    channel: Channel | None = None  # where the answer goes bit by bit, if it is wanted so
    call: Any = field(default=None, repr=False)  # the call it is in, while it is in flight

    @property
    def request_id(self) -> str:
        """The name of the request."""
        return self.request.request_id

    @property
    def attempt(self) -> int:
        """The number of the attempt that is made, or was made last."""
        return self.failures + 1

    def remember(self, error: GatewayError, *, now: datetime) -> None:
        """An attempt failed so."""
        failure = Failure.brief(error)
        self.failures += 1
        attempt = Attempt(
            self.failures,
            self.sent_at or now,
            now,
            failure.error_type,
            failure.error_message,
            failure.error_code,
        )
        self.trail = extend_trail(self.trail, attempt)

    def delivery(self, body: bytes = b"") -> Delivery:
        """The request as the core knows messages: what the retry policy is asked about, and with a body the letter."""
        request = self.request
        headers = headers_of(request)
        message = Message(request.request_id, queue_of(request.model), body, headers, published_at=self.accepted_at)
        return Delivery(
            message,
            GROUP,
            self.accepted_at,
            failures=self.failures,
            first_attempt_at=self.first_attempt_at,
        )


def milliseconds(length: timedelta) -> float:
    """A length of time as the journal tells it."""
    return round(length / _MILLISECOND, 3)


def headers_of(request: LLMRequest) -> Headers:
    """What a message that is a request says of itself."""
    return (
        ("content-type", b"application/json"),
        ("agent_id", request.agent_id.encode()),
        ("model", request.model.encode()),
    )


def queue_of(model: str) -> str:
    """The queue that the requests of a model belong to, in letters and metrics."""
    return f"llm.{model}"
