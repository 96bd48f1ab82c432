"""A request in the hands of the gateway."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, NamedTuple

from redrive.core.attempt import Attempt, Trail, extend_trail
from redrive.core.delivery import Delivery
from redrive.core.errors import GatewayError
from redrive.core.failure import Failure
from redrive.core.message import Headers, Message
from redrive.gateway.alarms import Alarm
from redrive.gateway.request import LLMRequest
from redrive.gateway.streams import Channel

GROUP: Final = "gateway"

_MICROSECOND: Final = timedelta(microseconds=1)


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
    once: bool = False  # no retry and no letter here: whoever asks sees to that
    trace: Headers = ()  # what ties its attempts to the trace of whoever asked
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
        headers = (*headers_of(request), *self.trace)
        message = Message(request.request_id, queue_of(request.model), body, headers, published_at=self.accepted_at)
        return Delivery(
            message,
            GROUP,
            self.accepted_at,
            failures=self.failures,
            first_attempt_at=self.first_attempt_at,
        )


class Ask(NamedTuple):
    """What somebody asks: a request, what is sent for it, and the tokens that it may cost where they are limited.

    `once` is for a worker that makes one attempt here, and decides itself what a failure means; with the `failures`
    that there were before. One that is `held` is a retry, and waits for the retry allowance.
    """

    request: LLMRequest
    body: bytes
    tokens: int = 0
    channel: Channel | None = None
    once: bool = False
    failures: int = 0
    held: bool = False
    trace: Headers = ()

    def ticket(self, *, now: datetime, deadline_at: datetime | None) -> Ticket:
        """The request, accepted."""
        return Ticket(
            self.request,
            self.body,
            self.tokens,
            now,
            deadline_at,
            ready_at=now,
            failures=self.failures,
            channel=self.channel,
            once=self.once,
            trace=self.trace,
        )


def milliseconds(length: timedelta) -> float:
    """A length of time as the journal tells it."""
    return length // _MICROSECOND / 1000


def headers_of(request: LLMRequest) -> Headers:
    """What a message that is a request says of itself."""
    return (
        ("content-type", b"application/json"),
        ("request_id", request.request_id.encode()),
        ("agent_id", request.agent_id.encode()),
        ("model", request.model.encode()),
    )


def queue_of(model: str) -> str:
    """The queue that the requests of a model belong to, in letters and metrics."""
    return f"llm.{model}"
