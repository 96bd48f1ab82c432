"""The results on SQLite as Markdown."""

from collections.abc import Mapping, Sequence

from benchmarks import markdown
from benchmarks.measure import Samples, Spread, percentile
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

MOST_CPU = 1.6
MOST_GROWTH = 1.5
MOST_RSS = 80e6


def report(samples: Samples, *, conditions: str, waiting: Mapping[str, int], others: Mapping[str, str]) -> str:
    """Everything a reader needs. `others` are the settings of other queues by the name of their case."""
    peers = [f"- {name}: {settings}" for name, settings in others.items()]
    return "\n\n".join(
        [
            conditions,
            _goals(samples, list(waiting)),
            "### Nothing fails",
            _costs(samples, [HAND, MERGED, OURS, TYPED, *others], reference=HAND),
            *(["Other queues commit every message by itself:\n\n" + "\n".join(peers)] if peers else []),
            "### Every tenth message fails three times and becomes a dead letter",
            "Retries without delay, breaker off.",
            _costs(samples, [HAND_FAILING, OURS_FAILING, OURS_FAILING_QUIETLY], reference=HAND_FAILING),
            "### The more that waits",
            f"The same number of messages is handled in each row: {min(waiting.values()):,}.",
            _costs(samples, list(waiting), reference=next(iter(waiting))),
            f"### Low load\n\nA message every 20 ms on average; milliseconds, over all runs.\n\n{_times(samples)}",
        ]
    )


def _goals(samples: Samples, waiting: Sequence[str]) -> str:
    growth = [_micros(samples, name) for name in waiting]
    rss = Spread.of(sample.peak_rss for sample in samples[waiting[-1]])
    return markdown.table(
        ["goal", "at most", "measured", "met"],
        [
            _goal("CPU per message, Redrive ÷ hand-written", MOST_CPU, _micros(samples, OURS) / _micros(samples, HAND)),
            _goal(f"CPU per message, dearest ÷ cheapest, up to {waiting[-1]}", MOST_GROWTH, max(growth) / min(growth)),
            _goal(f"largest RSS of a worker, {waiting[-1]}, MB", MOST_RSS / 1e6, rss.high / 1e6),
        ],
    )


def _goal(name: str, limit: float, measured: float) -> list[str]:
    return [name, markdown.number(limit), markdown.number(measured), "yes" if measured <= limit else "**no**"]


def _costs(samples: Samples, names: Sequence[str], *, reference: str) -> str:
    rows = [
        [
            name,
            markdown.spread(Spread.of(sample.micros for sample in samples[name])),
            markdown.number(_micros(samples, name) / _micros(samples, reference)),
            markdown.spread(Spread.of(sample.rate for sample in samples[name])),
            markdown.number(Spread.of(sample.peak_rss / 1e6 for sample in samples[name]).high),
        ]
        for name in names
    ]
    return markdown.table(["", "CPU µs per message", "÷ first row", "messages per second", "largest RSS, MB"], rows)


def _times(samples: Samples) -> str:
    rows = []
    for name in (SAME_PROCESS, OTHER_PROCESS, RETRY):
        times = [1000 * seconds for sample in samples[name] for seconds in sample.times]
        shares = [markdown.number(percentile(times, share)) for share in (0.5, 0.99, 1)]
        rows.append([name, *shares, f"{len(times):,}"])
    return markdown.table(["", "half within", "99 % within", "all within", "messages"], rows)


def _micros(samples: Samples, name: str) -> float:
    return Spread.of(sample.micros for sample in samples[name]).median
