"""Every alert in one table: from it come Prometheus' rules, Grafana's, and what Alertmanager keeps to itself."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

from redrive.observe import table

Unit = Literal["letters", "letters a second", "seconds", "incidents", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRow:
    """An alert: it fires when what `value` measures has been above `above` for as long as `lasting`.

    `value` may name its `{window}`, also as so many `{seconds}`. `description` may name `{value}`, `{window}`, and
    labels as `{queue}`. While it fires, nobody is told of the alert that it `inhibits` for the same queue.
    """

    name: str
    severity: Literal["warning", "critical"]
    value: str
    above: float
    unit: Unit
    lasting: timedelta
    window: timedelta = timedelta()
    labels: tuple[str, ...] = ("queue",)
    summary: str
    description: str
    runbook: str
    inhibits: str = ""

    def at_scale(self, scale: float) -> tuple[str, float]:
        """What is measured and the limit, with every time in them as many times as long."""
        window = self.window * scale
        value = self.value.replace("{window}", prometheus_time(window)).replace(
            "{seconds}", f"{window.total_seconds():g}"
        )
        match self.unit:
            case "seconds":
                return value, self.above * scale
            case "letters a second":
                return value, self.above / scale
            case _:
                return value, self.above


def prometheus_time(span: timedelta) -> str:
    """A time as Prometheus writes it, in the greatest unit that fits.

    >>> [prometheus_time(timedelta(seconds=one)) for one in (0, 0.25, 90, 300, 7200)]
    ['0s', '250ms', '90s', '5m', '2h']
    """
    milliseconds = round(span / timedelta(milliseconds=1))
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds % size == 0 and (milliseconds or unit == "s"):
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def grown(metric: str, by: str = "queue") -> str:
    """By how much a counter has grown in the window, with what a series that is new in it had from its beginning.

    `increase` does not see a series' first value, and most failures are the first of their kind. A series counts as new
    only where the same target was scraped before: what comes back after a gap is not news.
    """
    new = f"({metric} unless {metric} offset {{window}}) and on (job, instance) (up offset {{window}})"
    return f"sum by ({by}) ({new} or increase({metric}[{{window}}]))"


DLQ_SIZE: Final = (
    f"sum by (queue) (max by (broker, queue) ({table.DLQ_ENTRIES.name}) or max by (queue) ({table.OPEN_LETTERS.name}))"
)
"""Entries in the broker's DLQ, and open and parked letters; several services measure the same."""

_LETTERS = grown(table.LETTERS.name)
_FAILED = grown(f'{table.REDRIVEN.name}{{outcome="failed"}}')


def _minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


# fmt: off
ALERTS: Final = (
    AlertRow(
        name="RedriveDlqSizeHigh", severity="warning", value=DLQ_SIZE, above=10, unit="letters", lasting=_minutes(5),
        summary="Dead letters of {queue} wait for somebody",
        description="Letters of {queue} in the DLQ or in the store, open or parked: {value}.",
        runbook="dlq-size-high"),
    AlertRow(
        name="RedriveDlqGrowthRapid", severity="critical", value=_LETTERS, above=10, unit="letters",
        window=_minutes(5), lasting=_minutes(1),
        summary="Messages of {queue} die quickly",
        description="Messages of {queue} given up within {window}: {value}.",
        runbook="dlq-growth-rapid"),
    AlertRow(
        name="RedriveDlqAccumulating", severity="critical", value=DLQ_SIZE, above=10, unit="letters",
        lasting=_minutes(30), inhibits="RedriveDlqSizeHigh",
        summary="Nobody has looked after the dead letters of {queue} for half an hour",
        description="Letters of {queue} in the DLQ or in the store, open or parked: {value}.",
        runbook="dlq-accumulating"),
    AlertRow(
        name="RedriveDlqHighRate", severity="warning", value=f"{_LETTERS} / {{seconds}}", above=0.1,
        unit="letters a second", window=_minutes(5), lasting=_minutes(5),
        summary="Messages of {queue} go on dying",
        description="Messages of {queue} given up in a second: {value}.",
        runbook="dlq-high-rate"),
    AlertRow(
        name="RedriveDlqWriteFailures", severity="critical", value=grown(table.REFUSED.name), above=0, unit="letters",
        window=_minutes(5), lasting=_minutes(0),
        summary="Dead letters of {queue} cannot be written",
        description="Dead letters of {queue} that could not be written within {window}: {value}.",
        runbook="dlq-write-failures"),
    AlertRow(
        name="RedriveDlqThreshold", severity="warning", value=_LETTERS, above=100, unit="letters",
        window=_minutes(60), lasting=_minutes(5),
        summary="Many messages of {queue} died",
        description="Messages of {queue} given up within {window}: {value}.",
        runbook="dlq-threshold"),
    AlertRow(
        name="RedriveOldestLetterTooOld", severity="warning", value=f"max by (queue) ({table.OLDEST.name})",
        above=86_400, unit="seconds", lasting=_minutes(5),
        summary="A dead letter of {queue} has been forgotten",
        description="The oldest open or parked letter of {queue} died {value} ago.",
        runbook="oldest-letter-too-old"),
    AlertRow(
        name="RedriveCollectorLag", severity="warning", value=f"max by (broker, queue) ({table.LAG.name})",
        above=300, unit="seconds", lasting=_minutes(5), labels=("broker", "queue"),
        summary="Dead letters of {queue} are not collected",
        description="A letter or an outcome of {queue} has been waiting to be collected for {value}.",
        runbook="collector-lag"),
    AlertRow(
        name="RedriveQueuePausedByOutage", severity="warning",
        value=f"sum by (broker, queue, group) ({table.PAUSED.name})",
        above=0, unit="", lasting=_minutes(2), labels=("broker", "queue", "group"),
        summary="{group} consumes nothing from {queue}",
        description="Workers of {group} whose breaker or storm guard is open on {queue}: {value}.",
        runbook="queue-paused-by-outage"),
    AlertRow(
        name="RedriveNewIncident", severity="warning", value=grown(table.INCIDENTS.name), above=0, unit="incidents",
        window=_minutes(5), lasting=_minutes(0),
        summary="Messages of {queue} die of something new",
        description="Incidents of {queue} opened, or opened again, within {window}: {value}.",
        runbook="new-incident"),
    AlertRow(
        name="RedriveRedriveFailing", severity="warning", value=_FAILED, above=0, unit="letters",
        window=_minutes(15), lasting=_minutes(0),
        summary="Letters of {queue} that were sent back die again",
        description="Letters of {queue} that died again after a redrive, within {window}: {value}.",
        runbook="redrive-failing"),
)
# fmt: on
