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
    RedriveHalted,
    RedriveUnheard,
    SizingFailed,
    SuspectTaken,
    WorkerDied,
    WorkerStarted,
    WorkerStopped,
)
from redrive.core.printable import printable
from redrive.core.url import mask_url

log = logging.getLogger("redrive")


class Said(NamedTuple):
    """A log line in its parts: `set_up_logs` keeps them apart, any other formatter gets the text."""

    text: str
    fields: Mapping[str, object]

    def __str__(self) -> str:
        fields = (f"{name}={value}" for name, value in self.fields.items())
        return printable(mask_url(" ".join((self.text, *fields))))


class _Line(NamedTuple):
    """How an event is said: at which level, in which words, with which of its fields."""

    level: int
    text: str
    fields: tuple[str, ...] = ()


_LINES: dict[type[Event], _Line] = {
    BatchSettled: _Line(DEBUG, "settled", ("acked", "retried", "dead", "lost", "repeated", "refused")),
    HandlerFailed: _Line(INFO, "will retry", ("message_id", "attempt", "error_type", "why", "retry_in")),
    LetterWritten: _Line(WARNING, "dead letter"),
    LetterRefused: _Line(ERROR, "dead letter refused", ("message_id", "payload_sha256", "why", "dropped")),
    MessageDropped: _Line(WARNING, "dropped", ("message_id", "payload_sha256", "reason", "error_type")),
    SuspectTaken: _Line(WARNING, "suspect runs alone", ("message_id", "crashes")),
    DeliveryLost: _Line(WARNING, "delivery lost", ("message_id",)),
    ConsumerPaused: _Line(WARNING, "consumer paused", ("why", "released")),
    ConsumerResumed: _Line(INFO, "consumer resumed"),
    WorkerStarted: _Line(INFO, "worker started", ("owner",)),
    WorkerStopped: _Line(INFO, "worker stopped", ("owner", "released")),
    WorkerDied: _Line(ERROR, "worker died", ("owner", "text")),
    BrokerFaulted: _Line(WARNING, "broker fault", ("call", "why")),
    RedriveUnheard: _Line(WARNING, "not heard of", ("redrive_id", "letters", "quiet")),
    RedriveHalted: _Line(INFO, "redrive halted", ("redrive_id", "state", "why")),
    SizingFailed: _Line(WARNING, "cannot measure", ("place", "why")),
    AlertThresholdReached: _Line(ERROR, "alert threshold reached", ("letters", "window", "labels")),
}

_LETTER = ("letter_id", "generation", "reason", "error_type", "error_code", "fingerprint", "payload_sha256")


class EventLog:
    """The subscriber: call it with every event. What the level filters out costs next to nothing."""

    def __call__(self, event: Event) -> None:
        if isinstance(event, BatchSettled) and event.again and log.isEnabledFor(_LINES[HandlerFailed].level):
            for failed in event.failures():
                self(failed)
        line = _LINES.get(type(event))
        if line is None or not log.isEnabledFor(line.level):
            return
        fields = {name: getattr(event, name) for name in ("queue", "group", *line.fields)}
        if isinstance(event, LetterWritten):
            letter = event.letter
            fields |= {"message_id": letter.original_message_id, "attempt": letter.retry_count}
            fields |= {name: getattr(letter, name) for name in _LETTER}
        shown = {name: value for name, value in fields.items() if value not in ("", None, {})}
        log.log(line.level, Said(line.text, shown))
