"""The account: what became of requests, as rows of the journal, as events, and as counts."""

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from redrive.core.errors import GatewayError
from redrive.core.event import BatchSettled, ConsumerPaused, ConsumerResumed, HandlerFailed
from redrive.core.failure import Failure
from redrive.core.instant import instant_text
from redrive.gateway.journal import Journal
from redrive.gateway.request import LLMResponse
from redrive.gateway.surroundings import Surroundings
from redrive.gateway.ticket import GROUP, Ticket, milliseconds, queue_of

if TYPE_CHECKING:
    from redrive.gateway.alarms import Alarm

TOLD_EVERY: Final = timedelta(seconds=1)
"""How often counts become an event: an event for each answer would cost nearly as much as the answer."""

HELD: Final = "held"
"""The status of a retry that the breaker holds back: it has cost no attempt."""


class Account:
    """Tells what happens on one model's line. No row has a prompt, an answer or a key in it, nor a provider's words.

    Of requests that are asked `once` a worker tells the rest, so that nothing is told twice.
    """

    def __init__(self, model: str, around: Surroundings, journal: Journal | None) -> None:
        self._model = model
        self._around = around
        self._journal = journal
        self._where: dict[str, Any] = {"queue": queue_of(model), "group": GROUP}
        self._untold: Counter[str] = Counter()
        self._after_failures: Counter[int] = Counter()
        self._runs: list[tuple[float, int]] = []
        self._alarm: Alarm | None = None
        self.counts: Counter[str] = Counter()

    def answered(self, ticket: Ticket, response: LLMResponse, *, now: datetime) -> None:
        """A request has its answer."""
        self._count("answered", None if ticket.once else "acked")
        if not ticket.once:
            self._runs.append((response.latency_ms / 1000, 1))
            if ticket.failures:
                self._after_failures[ticket.failures] += 1
        if self._journal is not None:
            row = self._row(ticket, "success", now=now)
            row["latency_ms"] = response.latency_ms
            row["queue_ms"] = response.queue_ms
            row["total_ms"] = response.total_ms
            row["provider_request_id"] = response.provider_request_id
            if response.usage is not None:
                row["input_tokens"], row["output_tokens"] = response.usage
            self._journal.write("responses", row)

    def retried(self, ticket: Ticket, error: GatewayError, *, status: str, why: str, now: datetime) -> None:
        """An attempt failed and will be made again, after `ticket.delay_ms`. One that is held was not counted."""
        number = ticket.failures + (status == HELD)
        self._count("retried", "retried")
        delay = ticket.delay_ms
        failed = HandlerFailed(
            at=now,
            **self._where,
            message_id=ticket.request_id,
            attempt=number,
            error_type=Failure.brief(error).error_type,
            why=why,
            retry_in=delay / 1000,
        )
        self._around.sink.emit(failed)
        if self._journal is not None:
            row = {**self._row(ticket, status, now=now), **said_of(error), "delay_ms": delay, "why": why}
            row["attempt"] = number
            if ticket.sent_at is not None:
                row["latency_ms"] = milliseconds(now - ticket.sent_at)
                row["queue_ms"] = milliseconds(ticket.sent_at - ticket.ready_at)
            self._journal.write(
                "retries", {**row, "told_ms": None if error.retry_after is None else milliseconds(error.retry_after)}
            )

    def failed(self, ticket: Ticket, error: GatewayError, *, reason: str, now: datetime) -> None:
        """A request has ended in an error. It is dead only if it has become a letter: others may be asked again."""
        self._count("failed", "dead" if error.letter_id else None)
        if self._journal is not None and not ticket.once:
            row = {**self._row(ticket, "error", now=now), **said_of(error), "reason": reason}
            row["attempt"] = ticket.failures
            row["total_ms"] = milliseconds(now - ticket.accepted_at)
            row["letter_id"] = error.letter_id
            self._journal.write("errors", row)

    def cancelled(self, ticket: Ticket, *, now: datetime) -> None:
        """Nobody wants the answer any more."""
        self._count("cancelled")
        if self._journal is not None and not ticket.once:
            row = self._row(ticket, "cancelled", now=now)
            self._journal.write("errors", {**row, "total_ms": milliseconds(now - ticket.accepted_at)})

    def breaker_moved(self, why: str | None, *, now: datetime) -> None:
        """The breaker has opened, or closed."""
        event = (
            ConsumerResumed(at=now, **self._where) if why is None else ConsumerPaused(at=now, **self._where, why=why)
        )
        self._around.sink.emit(event)

    def tell(self) -> None:
        """Emit the counts that nobody has been told of yet."""
        self._around.alarms.call_off(self._alarm)
        self._alarm = None
        if self._untold:
            event = BatchSettled(
                at=self._around.clock.now(),
                **self._where,
                acked=self._untold["acked"],
                retried=self._untold["retried"],
                dead=self._untold["dead"],
                after_failures=dict(self._after_failures),
                runs=self._runs,
            )
            self._untold, self._after_failures, self._runs = Counter(), Counter(), []
            self._around.sink.emit(event)

    def _count(self, what: str, outcome: str | None = None) -> None:
        self.counts[what] += 1
        if outcome is not None:
            self._untold[outcome] += 1
            if self._alarm is None:
                self._alarm = self._around.alarms.at(self._around.clock.now() + TOLD_EVERY, self.tell)

    def _row(self, ticket: Ticket, status: str, *, now: datetime) -> dict[str, Any]:
        return {
            "timestamp": instant_text(now),
            "request_id": ticket.request.request_id,
            "agent_id": ticket.request.agent_id,
            "model": self._model,
            "attempt": ticket.failures + 1,
            "status": status,
        }


def said_of(error: GatewayError) -> dict[str, Any]:
    """What a row says of an error, in our words: its kind, its status and its code."""
    cause = error.__cause__ if isinstance(error.__cause__, GatewayError) else error
    return {
        "error_type": type(error).__name__,
        "error": type(cause).__name__ + (f" ({cause.code})" if cause.code else ""),
        "http_status": cause.status_code,
        "possibly_executed": error.possibly_executed,
        "provider_request_id": cause.provider_request_id,
    }
