"""The journal of a durable gateway: what its worker decides about requests, as rows."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from redrive.core.attempt import Attempt
from redrive.core.errors import GatewayError
from redrive.core.event import BatchSettled, Event, LetterWritten
from redrive.core.instant import instant_text
from redrive.core.letter import DeadLetter
from redrive.core.message import Headers
from redrive.core.outcome import RetryLater, Settlement
from redrive.gateway.account import said_of
from redrive.gateway.durable_letters import ending_of, name_of
from redrive.gateway.ticket import milliseconds

Rows = Iterator[tuple[str, Mapping[str, Any]]]
"""Rows, each with the file it belongs to."""

TakeFailure = Callable[[str], GatewayError | None]
"""How the last attempt for a request failed, where that is known; told once."""


def rows_of(event: Event, *, postpone_after: timedelta, take_failure: TakeFailure) -> Rows:
    """What the journal says of an event; nothing of most. No row has a prompt, an answer or a provider's words."""
    if isinstance(event, BatchSettled):
        for item in event.again:
            if item.attempt is not None and isinstance(item.outcome, RetryLater):
                failure = take_failure(name_of(item.delivery.message.headers))
                row = _retried(item, item.attempt, item.outcome, failure)
                yield "retries", row | {"status": _status(failure, postpone_after)}
        for letter in event.letters:
            yield "errors", _given_up(letter, take_failure(name_of(letter.headers)))
    elif isinstance(event, LetterWritten):
        yield "errors", _given_up(event.letter, take_failure(name_of(event.letter.headers)))


def _status(failure: GatewayError | None, postpone_after: timedelta) -> str:
    told = None if failure is None else failure.retry_after
    return "postponed" if told is not None and told > postpone_after else "retry"


def _retried(item: Settlement, attempt: Attempt, outcome: RetryLater, failure: GatewayError | None) -> dict[str, Any]:
    told = None if failure is None else failure.retry_after
    return {
        **_row(item.delivery.message.headers, "retry", at=attempt.ended_at),
        **_said(attempt.error_type, attempt.error_code, failure),
        "attempt": attempt.number,
        "latency_ms": milliseconds(attempt.ended_at - attempt.started_at),
        "delay_ms": milliseconds(outcome.delay or timedelta(0)),
        "told_ms": None if told is None else milliseconds(told),
        "why": str(outcome),
    }


def _given_up(letter: DeadLetter, failure: GatewayError | None) -> dict[str, Any]:
    began_at = letter.attempts[0].started_at if letter.attempts else letter.failed_at
    ending = ending_of(letter, failure)
    return {
        **_row(letter.headers, "error", at=letter.failed_at),
        **_said(letter.error_type, letter.error_code, ending if failure is not None else None),
        "error_type": type(ending).__name__,
        "possibly_executed": ending.possibly_executed,
        "attempt": letter.retry_count,
        "reason": letter.reason.value,
        "letter_id": letter.letter_id,
        "total_ms": milliseconds(letter.failed_at - began_at),
    }


def _said(error_type: str, code: str | None, error: GatewayError | None) -> dict[str, Any]:
    """What failed: as the error itself says it, where it is one of the gateway's, else as far as the worker knows."""
    if error is not None:
        return said_of(error)
    kind = error_type.rpartition(".")[2]
    return {"error_type": kind, "error": kind + (f" ({code})" if code else "")}


def _row(headers: Headers, status: str, *, at: datetime) -> dict[str, Any]:
    said = {name: value.decode("utf-8", "replace") for name, value in headers}
    named = {name: said.get(name, "") for name in ("request_id", "agent_id", "model")}
    return {"timestamp": instant_text(at), **named, "status": status}
