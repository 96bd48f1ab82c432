"""The results on SQLite as Markdown."""

from collections.abc import Mapping, Sequence

from benchmarks import tables
from benchmarks.measure import Spread
from benchmarks.runs import Samples
from benchmarks.sqlite.cases import (
    HAND,
    HAND_FAILING,
    MERGED,
    OTHER_PROCESS,
    OURS,
    OURS_FAILING,
    OURS_FAILING_QUIETLY,
    RETRY,
    SAME_PROCESS,
    TYPED,
)
from benchmarks.tables import Goal

MOST_CPU = 1.6
MOST_GROWTH = 1.5
MOST_RSS = 80e6


def report(samples: Samples, *, conditions: str, waiting: Mapping[str, int], others: Mapping[str, str]) -> str:
    """Everything a reader needs. `others` are the settings of other queues by the name of their case."""
    waited = tables.times(samples, [SAME_PROCESS, OTHER_PROCESS, RETRY])
    peers = [f"- {name}: {settings}" for name, settings in others.items()]
    return "\n\n".join(
        [
            conditions,
            _goals(samples, list(waiting)),
            "### Nothing fails",
            tables.costs(samples, [HAND, MERGED, OURS, TYPED, *others], reference=HAND),
            *(["Other queues commit every message by itself:\n\n" + "\n".join(peers)] if peers else []),
            "### Every tenth message fails three times and becomes a dead letter",
            "Retries without delay.",
            tables.costs(samples, [HAND_FAILING, OURS_FAILING, OURS_FAILING_QUIETLY], reference=HAND_FAILING),
            "### The more that waits",
            f"The same number of messages is handled in each row: {min(waiting.values()):,}.",
            tables.costs(samples, list(waiting), reference=next(iter(waiting))),
            f"### Low load\n\nA message every 20 ms on average; milliseconds, over all runs.\n\n{waited}",
        ]
    )


def _goals(samples: Samples, waiting: Sequence[str]) -> str:
    cpu = [Spread.of(map(tables.micros, samples[name])).median for name in waiting]
    growth = Spread.of([max(cpu) / min(cpu)])
    rss = Spread.of([max(sample.peak_rss for sample in samples[waiting[-1]]) / 1e6])
    return tables.goals(
        [
            Goal("CPU per message, Redrive ÷ hand-written", tables.ratio(samples, OURS, to=HAND), at_most=MOST_CPU),
            Goal(f"CPU per message, dearest ÷ cheapest, up to {waiting[-1]}", growth, at_most=MOST_GROWTH),
            Goal(f"largest RSS of a worker, {waiting[-1]}, MB", rss, at_most=MOST_RSS / 1e6),
        ]
    )
