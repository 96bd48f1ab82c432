"""The results on RabbitMQ as Markdown."""

from collections.abc import Mapping

from benchmarks import tables
from benchmarks.rabbitmq.cases import HAND, HAND_FAILING, OURS, OURS_FAILING, TYPED
from benchmarks.runs import Samples
from benchmarks.tables import Goal

MOST_CPU = 1.4

_FAILING = """\
Retries without delay. The loop publishes a failed message again, and its earlier failures are forgotten. Redrive keeps
them with it. After each run every message was found handled or dead."""


def report(samples: Samples, *, conditions: str, peers: Mapping[str, str]) -> str:
    """Everything a reader needs. `peers` are the settings of peers by the name of their case."""
    parts = [
        conditions,
        tables.goals(_goals(samples)),
        "### Nothing fails",
        tables.beside(samples, [HAND, OURS, TYPED], peers),
    ]
    if HAND_FAILING in samples:
        parts += [
            "### Every tenth message fails three times and becomes a dead letter",
            _FAILING,
            tables.beside(samples, [HAND_FAILING, OURS_FAILING], {}),
        ]
    return "\n\n".join(parts)


def _goals(samples: Samples) -> list[Goal]:
    return [Goal("CPU per message, Redrive ÷ hand-written", tables.ratio(samples, OURS, to=HAND), at_most=MOST_CPU)]
