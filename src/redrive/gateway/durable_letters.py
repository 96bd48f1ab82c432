"""The letters of a durable gateway: what they tell of a request, and what its caller is told of them."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from redrive.core.attempt import Attempt
from redrive.core.errors import (
    DeadlineExceeded,
    GatewayError,
    RateLimited,
    RequestRejected,
    RetriesExhausted,
)
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.reason import Reason
from redrive.gateway.endings import because
from redrive.gateway.letters import facts_of
from redrive.gateway.request import LLMRequest

UNSURE: Final = "possibly_executed"
"""The code of an attempt after which the provider may have done it: a trail keeps type, text and code, no more."""

_NAMES: Final = ("request_id", "agent_id", "model")


def name_of(headers: Sequence[tuple[str, bytes]]) -> str:
    """The id of the request in a message with these headers; empty if it says none."""
    return next((value.decode("utf-8", "replace") for name, value in headers if name == "request_id"), "")


def may_have_run(attempts: Iterable[Attempt]) -> bool:
    """Whether the provider may have done one of these attempts: it says so, or its worker died."""
    return any(attempt.crash or attempt.error_code == UNSURE for attempt in attempts)


def context_of(message: Message, failure: GatewayError | None) -> dict[str, Any]:
    """What the letter of a request tells, with what is known of its last failure."""
    told: dict[str, Any] = {name: value for name, value in message.headers if name in _NAMES}
    if failure is not None:
        told |= facts_of(failure)
    try:
        metadata = LLMRequest.from_json(message.body).metadata
    except GatewayError:
        return told
    return {**told, **{name: value for name, value in metadata.items() if name not in told}}


def is_about(letter: DeadLetter, fingerprint: str) -> bool:
    """Whether a letter is of the request with this fingerprint, as far as its payload can be read."""
    try:
        return letter.payload is None or LLMRequest.from_json(letter.payload).fingerprint == fingerprint
    except GatewayError:
        return True


def ending_of(letter: DeadLetter, failure: GatewayError | None) -> GatewayError:
    """What the caller of a request is told that has become a letter; `failure` is the last one, where it was here."""
    text = f"{letter.error_type}: {letter.error_message}"[:500]
    error: GatewayError
    if letter.reason is Reason.REJECTED:
        error = failure or RequestRejected(text)
    elif letter.reason is Reason.DEADLINE:
        told = isinstance(failure, RateLimited) and failure.until is not None
        error = failure if told and failure is not None else DeadlineExceeded(text)
    else:
        error = RetriesExhausted(f"{letter.retry_count} attempts failed, the last one with {text}")
        error.last = failure
    if failure is None:
        error.code = None if letter.error_code == UNSURE else letter.error_code
    elif error is not failure:
        because(error, failure)
    error.letter_id = letter.letter_id
    error.possibly_executed = error.possibly_executed or may_have_run(letter.attempts)
    if isinstance(error, RetriesExhausted | DeadlineExceeded):
        error.attempts = letter.retry_count
    return error
