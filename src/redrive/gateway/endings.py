"""What callers are told at the end: the answer, or an error made from what has failed."""

import copy
from datetime import datetime

from redrive.core.errors import DeadlineExceeded, GatewayError, RateLimited, RetriesExhausted
from redrive.core.reason import Reason
from redrive.gateway.request import LLMResponse
from redrive.gateway.ticket import State, Ticket, milliseconds
from redrive.gateway.wire import Answer


def response_of(ticket: Ticket, answer: Answer, provider_request_id: str, *, now: datetime) -> LLMResponse:
    """The answer to a request, with the story of its call."""
    sent_at = ticket.sent_at or now
    return LLMResponse(
        request_id=ticket.request_id,
        model=ticket.request.model,
        text=answer.text,
        finish_reason=answer.finish_reason,
        usage=answer.usage,
        raw=answer.raw,
        attempts=ticket.attempt,
        provider_request_id=provider_request_id or str(answer.raw.get("id") or "")[:200],
        latency_ms=milliseconds(now - sent_at),
        queue_ms=milliseconds(sent_at - ticket.ready_at),
        total_ms=milliseconds(now - ticket.accepted_at),
        possibly_executed=ticket.possibly_executed,
    )


def own_copy(error: GatewayError) -> GatewayError:
    """The same error for another request: an object of its own, which can be changed and raised by itself."""
    other = copy.copy(error)
    other.__cause__ = error.__cause__
    return other


def given_up(error: GatewayError, reason: Reason, ticket: Ticket) -> GatewayError:
    """What is told when no attempt is left, or none can help: then it is the error itself."""
    if reason is Reason.REJECTED:
        return error
    last: RetriesExhausted | DeadlineExceeded
    if reason is Reason.DEADLINE:
        last = DeadlineExceeded("the time for retries is over")
    else:
        last = RetriesExhausted(f"{ticket.failures} attempts failed, the last one with {error}"[:500])
        last.last = error
    last.attempts = ticket.failures
    return because(last, error)


def too_late(error: GatewayError, due_at: datetime, ticket: Ticket) -> GatewayError:
    """What is told when the next attempt would come after the deadline."""
    if isinstance(error, RateLimited):
        limited = RateLimited(f"the rate limit lasts beyond the deadline, until {due_at.isoformat()}")
        limited.until = due_at
        limited.retry_after = error.retry_after
        return because(limited, error)
    late = DeadlineExceeded("the next attempt would come after the deadline")
    late.attempts = ticket.failures
    return because(late, error)


def expired(ticket: Ticket) -> GatewayError:
    """What is told when the deadline has passed; a call that is in flight then may have been executed."""
    sent = ticket.state is State.IN_FLIGHT
    error = DeadlineExceeded(f"the deadline passed while the request was {ticket.state.value.replace('_', ' ')}")
    error.possibly_executed = ticket.possibly_executed or sent
    error.attempts = ticket.failures + sent
    return error


def because(error: GatewayError, cause: GatewayError) -> GatewayError:
    """The error, which says what its cause has said."""
    error.__cause__ = cause
    error.status_code, error.code = cause.status_code, cause.code
    error.provider_request_id = cause.provider_request_id
    error.possibly_executed = cause.possibly_executed
    return error
