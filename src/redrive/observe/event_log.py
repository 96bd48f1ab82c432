"""The subscriber that logs events, through the standard library's logging: a program's own set-up decides the rest.

No payload and no text of a handler's exception is logged, for both can hold what a log must not: letters are
named by id, payloads by hash.
"""

import logging
from collections.abc import Mapping
from logging import DEBUG, ERROR, INFO, WARNING
from typing import NamedTuple

from redrive.core.event import (
    AlertThresholdReached,
    BatchSettled,
    BrokerFaulted,
    ConsumerPaused,
    ConsumerResumed,
    DeliveryLost,
    Event,
    HandlerFailed,
    LetterRefused,
    LetterWritten,
    MessageDropped,
    NotifierFailed,
    RedriveHalted,
    RedriveUnheard,
    SizingFailed,
    SuspectTaken,
    WorkerDied,
    WorkerStarted,
    WorkerStopped,
)
from redrive.core.letter import DeadLetter
from redrive.core.place import COLLECTORS
from redrive.core.printable import printable
from redrive.core.privacy import PrivacyFilter

log = logging.getLogger("redrive")

_FILTER = PrivacyFilter()


class Said(NamedTuple):
    """A log line in its parts: `set_up_logs` keeps them apart, any other formatter gets the text."""

    text: str
    fields: Mapping[str, object]

    def __str__(self) -> str:
        fields = (f"{name}={value}" for name, value in self.fields.items())
        return printable(_FILTER.text(" ".join((self.text, *fields))))


class _Line(NamedTuple):
    """How an event is said: at which level, under which name that never changes, in which words, with which fields."""

    level: int
    name: str
    text: str
    fields: tuple[str, ...] = ()


_LINES: dict[type[Event], _Line] = {
    BatchSettled: _Line(DEBUG, "batch_settled", "settled", ("acked", "retried", "dead", "lost", "repeated", "refused")),
    HandlerFailed: _Line(
        INFO,
        "message_retry",
        "will retry",
        ("message_id", "letter_id", "trace_id", "attempt", "error_type", "why", "retry_in"),
    ),
    LetterWritten: _Line(WARNING, "dlq_published", "dead letter"),
    LetterRefused: _Line(
        ERROR, "dlq_publish_failed", "dead letter refused", ("message_id", "payload_sha256", "why", "dropped")
    ),
    MessageDropped: _Line(
        WARNING,
        "message_dropped",
        "dropped",
        ("message_id", "payload_sha256", "reason", "error_type", "error_code"),
    ),
    SuspectTaken: _Line(WARNING, "suspect_taken", "suspect runs alone", ("message_id", "crashes")),
    DeliveryLost: _Line(WARNING, "delivery_lost", "delivery lost", ("message_id",)),
    ConsumerPaused: _Line(WARNING, "consumer_paused", "consumer paused", ("why", "released")),
    ConsumerResumed: _Line(INFO, "consumer_resumed", "consumer resumed"),
    WorkerStarted: _Line(INFO, "consumer_started", "worker started", ("owner",)),
    WorkerStopped: _Line(INFO, "consumer_stopped", "worker stopped", ("owner", "released")),
    WorkerDied: _Line(ERROR, "worker_died", "worker died", ("owner", "text")),
    BrokerFaulted: _Line(WARNING, "broker_fault", "broker fault", ("call", "why")),
    RedriveUnheard: _Line(WARNING, "redrive_unheard", "not heard of", ("redrive_id", "letters", "quiet")),
    RedriveHalted: _Line(INFO, "redrive_halted", "redrive halted", ("redrive_id", "state", "why")),
    SizingFailed: _Line(WARNING, "sizing_failed", "cannot measure", ("place", "why")),
    NotifierFailed: _Line(WARNING, "notifier_failed", "notifier failed", ("notifier", "alerts", "why")),
    AlertThresholdReached: _Line(
        ERROR, "alert_threshold_reached", "alert threshold reached", ("letters", "window", "labels")
    ),
}

_NOT_WRITTEN = _Line(ERROR, "dlq_publish_failed", "dead letter not written yet", ("call", "why"))
"""A fault of the broker that kept letters from being written: said of each."""

_COLLECTING = {WorkerStarted: "dlq_consumer_started", WorkerStopped: "dlq_consumer_stopped"}
"""What these are called where the worker is the collector."""

_LETTER = (
    *("letter_id", "trace_id", "generation", "reason", "error_type", "error_code", "user_id"),
    *("fingerprint", "payload_sha256"),
)
_UNWRITTEN = ("letter_id", "trace_id", "reason", "error_type", "error_code", "payload_sha256")
_SAID_AS = {"retry_in": "delay"}


class EventLog:
    """The subscriber: call it with every event. What the level filters out costs next to nothing."""

    def __call__(self, event: Event) -> None:
        if isinstance(event, BatchSettled):
            self._tell_each(event)
        line = _line(event)
        if line is None or not log.isEnabledFor(line.level):
            return
        fields: dict[str, object] = {"event_name": line.name, "queue": event.queue, "group": event.group}
        fields |= {_SAID_AS.get(name, name): getattr(event, name) for name in line.fields}
        if isinstance(event, LetterWritten):
            _say(line, fields | {"attempt": event.letter.retry_count} | _facts(event.letter, _LETTER))
        elif isinstance(event, LetterRefused) and event.letter is not None:
            _say(line, fields | _facts(event.letter, _UNWRITTEN))
        elif isinstance(event, BrokerFaulted) and event.letters:
            for letter in event.letters:
                _say(line, fields | {"failure_reason": event.error_type} | _facts(letter, _UNWRITTEN))
        else:
            _say(line, fields)

    def _tell_each(self, batch: BatchSettled) -> None:
        if batch.again and log.isEnabledFor(_LINES[HandlerFailed].level):
            for failed in batch.failures():
                self(failed)
        if batch.letters and log.isEnabledFor(_LINES[LetterWritten].level):
            for written in batch.written():
                self(written)


def _facts(letter: DeadLetter, names: tuple[str, ...]) -> dict[str, object]:
    return {"message_id": letter.original_message_id} | {name: getattr(letter, name) for name in names}


def _say(line: _Line, fields: Mapping[str, object]) -> None:
    log.log(line.level, Said(line.text, {name: value for name, value in fields.items() if value not in ("", None, {})}))


def _line(event: Event) -> _Line | None:
    if isinstance(event, BrokerFaulted) and event.letters:
        return _NOT_WRITTEN
    line = _LINES.get(type(event))
    if line is not None and event.group == COLLECTORS:
        return line._replace(name=_COLLECTING.get(type(event), line.name))
    return line
