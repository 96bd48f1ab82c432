"""The results on NATS as Markdown."""

from collections.abc import Mapping

from benchmarks import tables
from benchmarks.nats.cases import HAND, HAND_FAILING, OURS, OURS_FAILING, OURS_FAILING_ALOUD, TYPED
from benchmarks.runs import Samples
from benchmarks.tables import Goal

MOST_CPU = 1.4

_FAILING = """\
Retries without delay. The hand-written loop counts deliveries, so that a crash or a restart spends attempts of every
message in hand, keeps nothing of the earlier failures, and does not delay. Redrive writes each failed attempt into the
bucket before its nak, and that a retry has begun before it runs. After each run every message was found handled or
dead, once."""


def report(samples: Samples, *, conditions: str, peers: Mapping[str, str]) -> str:
    """Everything a reader needs. `peers` are the settings of peers by the name of their case."""
    parts = [
        conditions,
        tables.goals(_goals(samples)),
        "### Nothing fails",
        tables.beside(samples, [HAND, OURS, TYPED], peers),
    ]
    if OURS_FAILING in samples:
        parts += [
            "### Every tenth message fails three times and becomes a dead letter",
            _FAILING,
            tables.beside(samples, [HAND_FAILING, OURS_FAILING, OURS_FAILING_ALOUD], {}),
        ]
    return "\n\n".join(parts)


def _goals(samples: Samples) -> list[Goal]:
    return [Goal("CPU per message, Redrive ÷ hand-written", tables.ratio(samples, OURS, to=HAND), at_most=MOST_CPU)]
