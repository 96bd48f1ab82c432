"""The results on Kafka as Markdown."""

from collections.abc import Mapping

from benchmarks import tables
from benchmarks.kafka.cases import BATCHES, HAND, HAND_FAILING, OURS, OURS_FAILING, OURS_FAILING_ALOUD, TYPED
from benchmarks.runs import Samples
from benchmarks.tables import Goal

MOST_CPU = 1.5
MOST_CPU_FAILING = 2.5

_FAILING = """\
Retries without delay. The loop writes a failed message into the topic again: every group gets it, and its earlier
failures are forgotten. Redrive keeps it with its group, due at a time, with its attempts. After each run every message
was found handled or dead, once."""


def report(samples: Samples, *, conditions: str, peers: Mapping[str, str]) -> str:
    """Everything a reader needs. `peers` are the settings of peers by the name of their case."""
    parts = [
        conditions,
        tables.goals(_goals(samples)),
        "### Nothing fails",
        tables.beside(samples, [HAND, OURS, BATCHES, TYPED], peers),
    ]
    if HAND_FAILING in samples:
        parts += [
            "### Every tenth message fails three times and becomes a dead letter",
            _FAILING,
            tables.beside(samples, [HAND_FAILING, OURS_FAILING, OURS_FAILING_ALOUD], {}),
        ]
    return "\n\n".join(parts)


def _goals(samples: Samples) -> list[Goal]:
    goals = [Goal("CPU per message, Redrive ÷ hand-written", tables.ratio(samples, OURS, to=HAND), at_most=MOST_CPU)]
    if OURS_FAILING in samples:
        cpu = tables.ratio(samples, OURS_FAILING, to=OURS)
        goals.append(Goal("CPU per message, 10 % failing ÷ nothing fails", cpu, at_most=MOST_CPU_FAILING))
    return goals
