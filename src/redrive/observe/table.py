"""Every metric in one typed table: its name, what it is, its labels, and what it tells."""

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class Row:
    """One metric. A gauge of several processes is shown as their greatest value, or their sum if it `adds_up`."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()
    adds_up: bool = False


_PLACE = ("broker", "queue", "group")
_ERROR = ("reason", "error_type", "error_code")
_MILLISECONDS_TO_MINUTES = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_TO_AN_HOUR = (*_MILLISECONDS_TO_MINUTES, 900, 3600)

# fmt: off
SETTLED: Final = Row(
    "redrive_settled_total", "counter", (*_PLACE, "outcome"),
    "Messages by what became of them: acked, retried, dead, repeated, lost or refused.")
RETRIES: Final = Row(
    "redrive_retries_total", "counter", (*_PLACE, "error_type"),
    "Attempts that failed and will be made again.")
LETTERS: Final = Row(
    "redrive_letters_total", "counter", (*_PLACE, *_ERROR),
    "Dead letters written; also by the label that `metrics.label` names, if any.")
ATTEMPTS: Final = Row(
    "redrive_failed_attempts", "histogram", (*_PLACE, "outcome"),
    "Failed attempts that a message had behind it at its end; outcome is success or dlq.",
    buckets=(0, 1, 2, 3, 4, 5))
REFUSED: Final = Row(
    "redrive_letters_refused_total", "counter", (*_PLACE, *_ERROR, "failure_reason", "then"),
    "Dead letters that could not be written; then the message was retried, held or dropped.")
DROPPED: Final = Row(
    "redrive_messages_dropped_total", "counter", (*_PLACE, *_ERROR),
    "Messages acked without a letter, invalid or given up with the DLQ off: gone, but for the hash in the log.")
HANDLER: Final = Row(
    "redrive_handler_seconds", "histogram", _PLACE,
    "Time of a run of the handler; runs that never wait share the time of their turn (5 ms), a batch is one run.",
    buckets=_MILLISECONDS_TO_MINUTES)
LATENESS: Final = Row(
    "redrive_lateness_seconds", "histogram", _PLACE,
    "How long after its due time a retry or a scheduled message was handed out.", buckets=_TO_AN_HOUR)
IN_FLIGHT: Final = Row(
    "redrive_in_flight", "gauge", _PLACE,
    "Messages in the hands of live processes, fetched and not yet settled; at each heartbeat.", adds_up=True)
LOST: Final = Row(
    "redrive_deliveries_lost_total", "counter", _PLACE,
    "Deliveries whose lease passed to somebody else while their handler ran.")
SUSPECTS: Final = Row(
    "redrive_suspects_total", "counter", _PLACE,
    "Messages run alone because their worker may have died of them.")
SUSPECTS_WAITING: Final = Row(
    "redrive_suspects_waiting", "gauge", _PLACE,
    "Messages that wait to be run alone; at each heartbeat.")
PAUSED: Final = Row(
    "redrive_consumer_paused", "gauge", _PLACE,
    "1 while a consumer holds back by itself: its breaker or the storm guard is open.")
QUEUE_PAUSED: Final = Row(
    "redrive_queue_paused", "gauge", _PLACE,
    "1 while somebody has paused the group; from the service, every 60 seconds.")
DEATHS: Final = Row(
    "redrive_worker_deaths_total", "counter", (),
    "Supervised processes that ended without being asked to.")
FAULTS: Final = Row(
    "redrive_broker_faults_total", "counter", (*_PLACE, "call"),
    "Calls to the broker that failed and will be tried again.")
ALERTS: Final = Row(
    "redrive_alert_thresholds_total", "counter", _PLACE,
    "How often letters reached the alert threshold within its window.")
LAG: Final = Row(
    "redrive_collect_lag_seconds", "gauge", _PLACE,
    "How long the oldest letter or outcome has been waiting to be collected.")
COLLECTED: Final = Row(
    "redrive_collected_total", "counter", ("broker", "queue", "result"),
    "Letters and outcomes that the store took in: new, reopened, resolved or known already.")
INCIDENTS: Final = Row(
    "redrive_incidents_opened_total", "counter", ("broker", "queue"),
    "Incidents opened, for the first time or again, by letters of this queue.")
REDRIVEN: Final = Row(
    "redrive_redriven_letters_total", "counter", ("broker", "queue", "outcome"),
    "Letters sent back, by what was heard of them: succeeded, failed, quiet or unconfirmed.")
REDRIVES: Final = Row(
    "redrive_redrives_total", "counter", ("outcome",),
    "Redrives that a redriver ended or halted: done, stopped or paused.")
STORE: Final = Row(
    "redrive_store_seconds", "histogram", ("call",),
    "Time of a call to the letter store, failed ones included.", buckets=_MILLISECONDS_TO_MINUTES)
DLQ_ENTRIES: Final = Row(
    "redrive_dlq_entries", "gauge", ("broker", "queue"),
    "Entries in the broker's DLQ; from the service, every 60 seconds.")
OPEN_LETTERS: Final = Row(
    "redrive_open_letters", "gauge", ("queue",),
    "Open and parked letters in the store; from the service, every 60 seconds.")
OLDEST: Final = Row(
    "redrive_oldest_letter_age_seconds", "gauge", ("queue",),
    "Time since the failure of the oldest letter that is open or parked, 0 if there is none; every 60 seconds.")
SIZE_FAILURES: Final = Row(
    "redrive_size_failures_total", "counter", ("place",),
    "How often what is measured every 60 seconds could not be: at the store, or at a broker.")
ALERTS_TOLD: Final = Row(
    "redrive_alerts_told_total", "counter", ("notifier", "state"),
    "Alerts of which a notifier was told, repetitions included: firing or resolved.")
NOTIFIER_FAILURES: Final = Row(
    "redrive_notifier_failures_total", "counter", ("notifier",),
    "How often a notifier could not be told of alerts; it is told again later.")
# fmt: on

TABLE: Final = (
    SETTLED, RETRIES, LETTERS, ATTEMPTS, REFUSED, DROPPED, HANDLER, LATENESS, IN_FLIGHT, LOST, SUSPECTS,
    SUSPECTS_WAITING, PAUSED, QUEUE_PAUSED, DEATHS, FAULTS, ALERTS, LAG, COLLECTED, INCIDENTS, REDRIVEN, REDRIVES,
    STORE, DLQ_ENTRIES, OPEN_LETTERS, OLDEST, SIZE_FAILURES, ALERTS_TOLD, NOTIFIER_FAILURES,
)  # fmt: skip
