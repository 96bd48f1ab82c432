"""The subscriber that counts events into the metrics of the table.

Labels are few and bounded: never a message id, never the text of a handler's error. What succeeds, and what will be
tried again, costs a few increments per settle call, not per message.
"""

import collections
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from prometheus_client import CollectorRegistry, start_http_server

from redrive.core.errors import ConfigError
from redrive.core.event import (
    AlertsTold,
    AlertThresholdReached,
    BatchSettled,
    BrokerFaulted,
    CollectorLagged,
    ConsumerPaused,
    ConsumerResumed,
    DeliveryLost,
    DlqSized,
    Event,
    HandlerFailed,
    LetterRefused,
    LettersCollected,
    LettersSized,
    LetterWritten,
    MessageDropped,
    NotifierFailed,
    PauseSeen,
    RedriveHalted,
    RedriveUnheard,
    SizingFailed,
    StoreCalled,
    SuspectTaken,
    WorkerBeat,
    WorkerDied,
    WorkerStarted,
    WorkerStopped,
)
from redrive.core.letter import DeadLetter
from redrive.core.privacy import PrivacyFilter
from redrive.observe import table
from redrive.observe.series import BOUNDED, Series

OUTCOMES: Final = ("acked", "retried", "dead", "repeated", "lost", "refused")
RESULTS: Final = ("new", "reopened", "resolved", "known")

LABELLING: Final = ("handler", "app_version", "node", "severity", "kind", "user_id", "tenant_id", "task_type")
"""Fields of a letter that may be its user's label; any other name is looked for in its context."""

_FILTER: Final = PrivacyFilter()
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


class Metrics:
    """The subscriber: call it with every event. One per registry; safe from any thread.

    `label` is the name of a letter's field, or of a name in its context, by which letters are counted too. `known` are
    series that there are already, by name and labels. Raises `ConfigError` for a label that cannot be one.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        label: str | None = None,
        known: Iterable[tuple[str, Mapping[str, str]]] = (),
    ) -> None:
        self._label = label
        self._by_row = {row: Series(_labelled(row, label), registry, bounded=_bounded(label)) for row in table.TABLE}
        rows = {row.name: row for row in table.TABLE}
        for name, labels in known:
            if name in rows:
                row = _labelled(rows[name], label)
                self._by_row[rows[name]].recall(tuple(labels.get(one, "") for one in row.labels))
        self._settled = self._by_row[table.SETTLED]
        self._retries = self._by_row[table.RETRIES]
        self._letters = self._by_row[table.LETTERS]
        self._attempts = self._by_row[table.ATTEMPTS]
        self._handler = self._by_row[table.HANDLER]
        self._count: dict[type[Event], Callable[[Any], None]] = {
            BatchSettled: self._batch_settled,
            HandlerFailed: self._handler_failed,
            LetterWritten: self._letter_written,
            LetterRefused: self._letter_refused,
            MessageDropped: self._message_dropped,
            DeliveryLost: lambda event: self._add(table.LOST, event),
            SuspectTaken: lambda event: self._add(table.SUSPECTS, event),
            ConsumerPaused: lambda event: self._of(table.PAUSED, event).set(1),
            ConsumerResumed: lambda event: self._of(table.PAUSED, event).set(0),
            WorkerStarted: lambda event: self._of(table.PAUSED, event).set(0),
            WorkerBeat: self._worker_beat,
            WorkerStopped: lambda event: self._of(table.IN_FLIGHT, event).set(0),
            WorkerDied: lambda _: self._by_row[table.DEATHS][()].inc(),
            BrokerFaulted: self._broker_faulted,
            CollectorLagged: lambda event: self._of(table.LAG, event).set(event.seconds),
            AlertThresholdReached: lambda event: self._add(table.ALERTS, event),
            LettersCollected: self._letters_collected,
            RedriveUnheard: self._redrive_unheard,
            RedriveHalted: lambda event: self._by_row[table.REDRIVES][(event.state,)].inc(),
            StoreCalled: lambda event: self._by_row[table.STORE][(event.call,)].observe(event.seconds),
            DlqSized: lambda event: self._by_row[table.DLQ_ENTRIES][event.broker, event.queue].set(event.entries),
            LettersSized: self._letters_sized,
            PauseSeen: lambda event: self._of(table.QUEUE_PAUSED, event).set(event.paused),
            AlertsTold: self._alerts_told,
            NotifierFailed: lambda event: self._by_row[table.NOTIFIER_FAILURES][(event.notifier,)].inc(),
            SizingFailed: lambda event: self._by_row[table.SIZE_FAILURES][(event.place,)].inc(),
        }

    def __call__(self, event: Event) -> None:
        count = self._count.get(type(event))
        if count is not None:
            count(event)

    def _of(self, row: table.Row, event: Event, *labels: str) -> Any:
        return self._by_row[row][event.broker, event.queue, event.group, *labels]

    def _add(self, row: table.Row, event: Event, *labels: str) -> None:
        self._of(row, event, *labels).inc()

    def _batch_settled(self, event: BatchSettled) -> None:
        place = (event.broker, event.queue, event.group)
        for outcome in OUTCOMES:
            count = getattr(event, outcome)
            if count:
                self._settled[*place, outcome].inc(count)
        if event.acked:
            tried = event.after_failures
            self._attempts[*place, "success"].observe_times(0, event.acked - sum(tried.values()))
            if tried:
                self._attempts[*place, "success"].observe_many([*tried.items()])
        if event.runs:
            self._handler[place].observe_many(event.runs)
        if event.late_by:
            self._of(table.LATENESS, event).observe_many([(seconds, 1) for seconds in event.late_by])
        if event.again:
            failed = [item.attempt.error_type for item in event.again if item.attempt is not None]
            for error_type, count in collections.Counter(failed).items():
                self._retries[*place, error_type].inc(count)
        if event.letters:
            self._letters_written(place, event.letters)

    def _handler_failed(self, event: HandlerFailed) -> None:
        self._add(table.RETRIES, event, event.error_type)

    def _letter_written(self, event: LetterWritten) -> None:
        self._letters_written((event.broker, event.queue, event.group), (event.letter,))

    def _letters_written(self, place: tuple[str, str, str], letters: Sequence[DeadLetter]) -> None:
        label = self._label
        died_of = [_error(one) if label is None else (*_error(one), _value(one, label)) for one in letters]
        for labels, count in collections.Counter(died_of).items():
            self._letters[*place, *labels].inc(count)
        tried = collections.Counter([letter.retry_count for letter in letters])
        self._attempts[*place, "dlq"].observe_many([*tried.items()])

    def _letter_refused(self, event: LetterRefused) -> None:
        then = "dropped" if event.dropped else "held"
        self._add(table.REFUSED, event, *_error(event.letter), event.failure_reason, then)

    def _message_dropped(self, event: MessageDropped) -> None:
        self._add(table.DROPPED, event, event.reason, event.error_type, _FILTER.text(event.error_code))

    def _worker_beat(self, event: WorkerBeat) -> None:
        self._of(table.IN_FLIGHT, event).set(event.in_flight)
        self._of(table.SUSPECTS_WAITING, event).set(event.suspects)

    def _broker_faulted(self, event: BrokerFaulted) -> None:
        self._add(table.FAULTS, event, event.call)
        for letter in event.letters:
            self._add(table.REFUSED, event, *_error(letter), event.error_type, "retried")

    def _letters_collected(self, event: LettersCollected) -> None:
        place = (event.broker, event.queue)
        for result in RESULTS:
            count = getattr(event, result)
            if count:
                self._by_row[table.COLLECTED][*place, result].inc(count)
        for outcome, count in (("succeeded", event.resolved), ("failed", event.reopened)):
            if count:
                self._by_row[table.REDRIVEN][*place, outcome].inc(count)
        self._by_row[table.INCIDENTS][place].inc(event.incidents)

    def _redrive_unheard(self, event: RedriveUnheard) -> None:
        outcome = "quiet" if event.quiet else "unconfirmed"
        self._by_row[table.REDRIVEN][event.broker, event.queue, outcome].inc(event.letters)

    def _alerts_told(self, event: AlertsTold) -> None:
        for state in ("firing", "resolved"):
            if count := getattr(event, state):
                self._by_row[table.ALERTS_TOLD][event.notifier, state].inc(count)

    def _letters_sized(self, event: LettersSized) -> None:
        self._by_row[table.OPEN_LETTERS][(event.queue,)].set(event.letters)
        self._by_row[table.OLDEST][(event.queue,)].set(event.oldest)


def _labelled(row: table.Row, label: str | None) -> table.Row:
    if label is None or row is not table.LETTERS:
        return row
    if not _LABEL.fullmatch(label) or label in row.labels:
        raise ConfigError(
            "metrics.label: expected a name of letters, digits and underscores that is none of "
            f"{', '.join(row.labels)}, got {label!r}"
        )
    return replace(row, labels=(*row.labels, label))


def _bounded(label: str | None) -> frozenset[str]:
    return BOUNDED if label is None else BOUNDED | {label}


def _value(letter: DeadLetter, label: str) -> str:
    found = getattr(letter, label) if label in LABELLING else None
    if found is None:
        found = letter.context.get(label)
    return "" if found is None else _FILTER.text(str(found))


def _error(letter: DeadLetter | None) -> tuple[str, str, str]:
    """The labels that say what a letter died of."""
    return ("", "", "") if letter is None else (letter.reason, letter.error_type, letter.error_code or "")


def serve_metrics(registry: CollectorRegistry, port: int, *, host: str = "127.0.0.1") -> Callable[[], None]:
    """Answer Prometheus on `http://host:port/metrics` from a thread; return the function that ends it.

    Raises `OSError` if the port is taken.
    """
    server, thread = start_http_server(port, addr=host, registry=registry)

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop
