"""The journal of a durable gateway: what its worker decides about requests, as rows."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from redrive.core.attempt import Attempt
from redrive.core.event import BatchSettled, Event, LetterWritten
from redrive.core.instant import instant_text
from redrive.core.letter import DeadLetter
from redrive.core.message import Headers
from redrive.core.outcome import RetryLater, Settlement
from redrive.gateway.ticket import milliseconds

Rows = Iterator[tuple[str, Mapping[str, Any]]]
"""Rows, each with the file it belongs to."""


def rows_of(event: Event, *, postpone_after: timedelta) -> Rows:
    """What the journal says of an event; nothing of most. No row has a prompt, an answer or a provider's words."""
    if isinstance(event, BatchSettled):
        for item in event.again:
            if item.attempt is not None and isinstance(item.outcome, RetryLater):
                yield "retries", _retried(item, item.attempt, item.outcome, postpone_after=postpone_after)
        for letter in event.letters:
            yield "errors", _given_up(letter)
    elif isinstance(event, LetterWritten):
        yield "errors", _given_up(event.letter)


def _retried(item: Settlement, attempt: Attempt, outcome: RetryLater, *, postpone_after: timedelta) -> dict[str, Any]:
    delay = outcome.delay or timedelta(0)
    return {
        **_row(item.delivery.message.headers, "postponed" if delay > postpone_after else "retry", at=attempt.ended_at),
        "attempt": attempt.number,
        "latency_ms": milliseconds(attempt.ended_at - attempt.started_at),
        "error_type": attempt.error_type.rpartition(".")[2],
        "error": attempt.error_code or "",
        "delay_ms": milliseconds(delay),
        "why": str(outcome),
    }


def _given_up(letter: DeadLetter) -> dict[str, Any]:
    began_at = letter.attempts[0].started_at if letter.attempts else letter.failed_at
    return {
        **_row(letter.headers, "error", at=letter.failed_at),
        "attempt": letter.retry_count,
        "error_type": letter.error_type.rpartition(".")[2],
        "error": letter.error_code or "",
        "reason": letter.reason.value,
        "letter_id": letter.letter_id,
        "total_ms": milliseconds(letter.failed_at - began_at),
    }


def _row(headers: Headers, status: str, *, at: datetime) -> dict[str, Any]:
    said = {name: value.decode("utf-8", "replace") for name, value in headers}
    named = {name: said.get(name, "") for name in ("request_id", "agent_id", "model")}
    return {"timestamp": instant_text(at), **named, "status": status}
