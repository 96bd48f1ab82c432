"""The panels of the dashboard in one table: what each asks Prometheus, and how it is shown."""

from dataclasses import dataclass
from typing import Final, Literal

from deploy.generator.alert_table import DLQ_SIZE
from redrive.observe import table

_QUEUE: Final = 'queue=~"$queue"'


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelRow:
    """A panel: `asks` by what its lines are called, which may name labels as `{{queue}}`."""

    title: str
    tells: str
    kind: Literal["lines", "pie", "number"] = "lines"
    unit: str = "short"
    asks: tuple[tuple[str, str], ...]
    width: int = 8


def _rate(metric: str, by: str, where: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{{{_QUEUE}{where}}}[$__rate_interval]))"


def _quantile(quantile: float, metric: str, by: str, where: str = "") -> str:
    return f"histogram_quantile({quantile}, {_rate(f'{metric}_bucket', f'le, {by}', where)})"


_SIZE = DLQ_SIZE.replace(f"({table.DLQ_ENTRIES.name})", f"({table.DLQ_ENTRIES.name}{{{_QUEUE}}})").replace(
    f"({table.OPEN_LETTERS.name})", f"({table.OPEN_LETTERS.name}{{{_QUEUE}}})"
)

# fmt: off
PANELS: Final = (
    PanelRow(
        title="Letters that wait", kind="number", width=6,
        tells="Entries in DLQs, and open and parked letters in the store.",
        asks=(("letters", f"sum({_SIZE})"),)),
    PanelRow(
        title="Oldest letter", kind="number", unit="s", width=6,
        tells="How long ago the oldest open or parked letter died.",
        asks=(("age", f"max({table.OLDEST.name}{{{_QUEUE}}})"),)),
    PanelRow(
        title="Dead letters in the time shown", kind="number", width=6, tells="Messages given up.",
        asks=(("letters", f"sum(increase({table.LETTERS.name}{{{_QUEUE}}}[$__range]))"),)),
    PanelRow(
        title="Letters that could not be written", kind="number", width=6, tells="In the time shown; should be 0.",
        asks=(("letters", f"sum(increase({table.REFUSED.name}{{{_QUEUE}}}[$__range])) or vector(0)"),)),
    PanelRow(
        title="Dead-letter rate", unit="cps", tells="Messages given up in a second, by queue and error.",
        asks=(("{{queue}} {{error_type}}", _rate(table.LETTERS.name, "queue, error_type")),)),
    PanelRow(
        title="DLQ size", tells="Entries in the broker's DLQ, and open and parked letters.",
        asks=(("{{queue}}", _SIZE),)),
    PanelRow(
        title="Top error types", kind="pie", tells="What messages died of, in the time shown.",
        asks=(("{{error_type}}",
               f"topk(10, sum by (error_type) (increase({table.LETTERS.name}{{{_QUEUE}}}[$__range])))"),)),
    PanelRow(
        title="Retry rate", unit="cps", tells="Attempts in a second that failed and will be made again.",
        asks=(("{{queue}} {{error_type}}", _rate(table.RETRIES.name, "queue, error_type")),)),
    PanelRow(
        title="Failed attempts before the end", tells="Of messages that succeeded, and of those that were given up.",
        asks=tuple(
            (f"{{{{queue}}}} {{{{outcome}}}} {word}", _quantile(quantile, table.ATTEMPTS.name, "queue, outcome"))
            for word, quantile in (("median", 0.5), ("95 %", 0.95), ("99 %", 0.99)))),
    PanelRow(
        title="Outcomes", unit="cps", tells="Messages settled in a second, by what became of them.",
        asks=(("{{queue}} {{outcome}}", _rate(table.SETTLED.name, "queue, outcome")),)),
    PanelRow(
        title="Handler time", unit="s", tells="95 of 100 runs of the handler take no longer.",
        asks=(("{{queue}}", _quantile(0.95, table.HANDLER.name, "queue")),)),
    PanelRow(
        title="Collector lag", unit="s", tells="How long the oldest letter or outcome has waited to be collected.",
        asks=(("{{broker}} {{queue}}", f"max by (broker, queue) ({table.LAG.name}{{{_QUEUE}}})"),)),
    PanelRow(
        title="Oldest letter by queue", unit="s", tells="How long ago the oldest open or parked letter died.",
        asks=(("{{queue}}", f"max by (queue) ({table.OLDEST.name}{{{_QUEUE}}})"),)),
    PanelRow(
        title="Redrive outcomes", tells="Letters sent back, by what was heard of them.",
        asks=(("{{queue}} {{outcome}}",
               f"sum by (queue, outcome) (increase({table.REDRIVEN.name}{{{_QUEUE}}}[$__rate_interval]))"),)),
    PanelRow(
        title="Incidents opened", tells="For the first time or again.",
        asks=(("{{queue}}", f"sum by (queue) (increase({table.INCIDENTS.name}{{{_QUEUE}}}[$__rate_interval]))"),)),
    PanelRow(
        title="Consumers that hold back",
        tells="Workers whose breaker or storm guard is open, and groups that somebody paused.",
        asks=(("{{queue}} {{group}} by itself", f"sum by (queue, group) ({table.PAUSED.name}{{{_QUEUE}}})"),
              ("{{queue}} {{group}} by somebody", f"max by (queue, group) ({table.QUEUE_PAUSED.name}{{{_QUEUE}}})"))),
    PanelRow(
        title="In flight", tells="Messages in the hands of workers.",
        asks=(("{{queue}}", f"sum by (queue) ({table.IN_FLIGHT.name}{{{_QUEUE}}})"),)),
    PanelRow(
        title="Calls to the store", unit="s", tells="95 of 100 calls take no longer.",
        asks=(("{{call}}",
               f"histogram_quantile(0.95, sum by (le, call) (rate({table.STORE.name}_bucket[$__rate_interval])))"),)),
)
# fmt: on
