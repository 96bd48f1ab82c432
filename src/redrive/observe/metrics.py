"""Metrics: every name in one typed table, and the subscriber that counts events into them.

Labels are few and bounded: never a message id, never the text of an error. What succeeds, and what will be tried
again, costs one increment per settle call, not per message.
"""

import collections
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from redrive.core.event import (
    AlertThresholdReached,
    BatchSettled,
    BrokerFaulted,
    CollectorLagged,
    ConsumerPaused,
    ConsumerResumed,
    DeliveryLost,
    Event,
    HandlerFailed,
    LetterRefused,
    LetterWritten,
    MessageDropped,
    SuspectTaken,
    WorkerDied,
    WorkerStarted,
)

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class Row:
    """One metric: its name, what it is, its labels, and what it tells."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()


# fmt: off
SETTLED = Row("redrive_settled_total", "counter", ("queue", "group", "outcome"),
              "Outcomes by the broker's answer: acked, retried, dead, repeated, lost or refused.")
RETRIES = Row("redrive_retries_total", "counter", ("queue", "group", "error_type"),
              "Attempts that failed and will be made again.")
LETTERS = Row("redrive_letters_total", "counter", ("queue", "group", "reason", "error_type"),
              "Dead letters written.")
ATTEMPTS = Row("redrive_letter_attempts", "histogram", ("queue", "group"),
               "Attempts that a message had before it was given up.", buckets=(0, 1, 2, 3, 4, 5, 8, 13, 21))
REFUSED = Row("redrive_letters_refused_total", "counter", ("queue", "group", "then"),
              "Dead letters that could not be written; then the message was held or dropped.")
DROPPED = Row("redrive_messages_dropped_total", "counter", ("queue", "group", "reason", "error_type"),
              "Messages given up with the DLQ off and acked: gone, but for the hash in the log.")
LOST = Row("redrive_deliveries_lost_total", "counter", ("queue", "group"),
           "Deliveries whose lease passed to somebody else while their handler ran.")
SUSPECTS = Row("redrive_suspects_total", "counter", ("queue", "group"),
               "Messages run alone because their worker may have died of them.")
PAUSED = Row("redrive_consumer_paused", "gauge", ("queue", "group"),
             "1 while the consumer does not fetch: paused by a person, the breaker or the storm guard.")
DEATHS = Row("redrive_worker_deaths_total", "counter", (),
             "Supervised processes that ended without being asked to.")
FAULTS = Row("redrive_broker_faults_total", "counter", ("queue", "group", "call"),
             "Calls to the broker that failed and will be tried again.")
ALERTS = Row("redrive_alert_thresholds_total", "counter", ("queue", "group"),
             "How often letters reached the alert threshold within its window.")
LAG = Row("redrive_collect_lag_seconds", "gauge", ("queue", "group"),
          "How long the oldest letter or outcome has been waiting to be collected.")
# fmt: on

TABLE: tuple[Row, ...] = (
    SETTLED, RETRIES, LETTERS, ATTEMPTS, REFUSED, DROPPED, LOST, SUSPECTS, PAUSED, DEATHS, FAULTS, ALERTS, LAG,
)  # fmt: skip

OUTCOMES = ("acked", "retried", "dead", "repeated", "lost", "refused")

ERROR_TYPES = 200
"""How many error types a process counts by name; if a program makes up more, the rest are `other`."""


class _Children(dict[tuple[str, ...], Any]):
    """A metric's children by label values: made once, then a dictionary lookup."""

    def __init__(self, metric: Counter | Gauge | Histogram, *, labelled: bool) -> None:
        super().__init__()
        self._metric = metric
        if not labelled:
            self[()] = metric

    def __missing__(self, labels: tuple[str, ...]) -> Any:
        child = self[labels] = self._metric.labels(*labels)
        return child


def _made(row: Row, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    if row.kind == "counter":
        return Counter(row.name, row.help, row.labels, registry=registry)
    if row.kind == "gauge":
        return Gauge(row.name, row.help, row.labels, registry=registry, multiprocess_mode="livemax")
    return Histogram(row.name, row.help, row.labels, registry=registry, buckets=row.buckets)


class Metrics:
    """The subscriber: call it with every event. One per registry; safe from any thread."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._by_row = {row: _Children(_made(row, registry), labelled=bool(row.labels)) for row in TABLE}
        self._settled = self._by_row[SETTLED]
        self._retries = self._by_row[RETRIES]
        self._letters = self._by_row[LETTERS]
        self._attempts = self._by_row[ATTEMPTS]
        self._error_types: set[str] = set()
        self._count: dict[type[Event], Callable[[Any], None]] = {
            BatchSettled: self._batch_settled,
            HandlerFailed: self._handler_failed,
            LetterWritten: self._letter_written,
            LetterRefused: self._letter_refused,
            MessageDropped: self._message_dropped,
            DeliveryLost: lambda event: self._add(LOST, event),
            SuspectTaken: lambda event: self._add(SUSPECTS, event),
            ConsumerPaused: lambda event: self._of(PAUSED, event).set(1),
            ConsumerResumed: lambda event: self._of(PAUSED, event).set(0),
            WorkerStarted: lambda event: self._of(PAUSED, event).set(0),
            WorkerDied: lambda _: self._by_row[DEATHS][()].inc(),
            BrokerFaulted: lambda event: self._add(FAULTS, event, event.call),
            CollectorLagged: lambda event: self._of(LAG, event).set(event.seconds),
            AlertThresholdReached: lambda event: self._add(ALERTS, event),
        }

    def __call__(self, event: Event) -> None:
        count = self._count.get(type(event))
        if count is not None:
            count(event)

    def _of(self, row: Row, event: Event, *labels: str) -> Any:
        return self._by_row[row][event.queue, event.group, *labels]

    def _add(self, row: Row, event: Event, *labels: str) -> None:
        self._of(row, event, *labels).inc()

    def _batch_settled(self, event: BatchSettled) -> None:
        for outcome in OUTCOMES:
            count = getattr(event, outcome)
            if count:
                self._settled[event.queue, event.group, outcome].inc(count)
        if event.again:
            failed = [item.attempt.error_type for item in event.again if item.attempt is not None]
            for error_type, count in collections.Counter(failed).items():
                self._retries[event.queue, event.group, self._error_type(error_type)].inc(count)

    def _handler_failed(self, event: HandlerFailed) -> None:
        self._retries[event.queue, event.group, self._error_type(event.error_type)].inc()

    def _letter_written(self, event: LetterWritten) -> None:
        letter, queue, group = event.letter, event.queue, event.group
        self._letters[queue, group, letter.reason.value, self._error_type(letter.error_type)].inc()
        self._attempts[queue, group].observe(letter.retry_count)

    def _letter_refused(self, event: LetterRefused) -> None:
        self._add(REFUSED, event, "dropped" if event.dropped else "held")

    def _message_dropped(self, event: MessageDropped) -> None:
        self._add(DROPPED, event, event.reason, self._error_type(event.error_type))

    def _error_type(self, name: str) -> str:
        if name in self._error_types:
            return name
        if len(self._error_types) >= ERROR_TYPES:
            return "other"
        self._error_types.add(name)
        return name


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
