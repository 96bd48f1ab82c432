"""The results on the letter store as Markdown."""

from collections.abc import Mapping, Sequence

from benchmarks import markdown, tables
from benchmarks.measure import Spread, percentile
from benchmarks.runs import Samples
from benchmarks.store.reading import BUDGETED, FLAT
from benchmarks.tables import Goal

MOST_GROWTH = 2.0
MOST_MILLIS = 50.0

Times = Mapping[int, Mapping[str, Sequence[float]]]


def report(times: Times, samples: Samples, *, filled: Mapping[int, Mapping[str, float]], conditions: str) -> str:
    """Everything a reader needs."""
    parts = [conditions]
    if times:
        parts += [
            _goals(times),
            "### Questions that are answered from indexes and tallies: p95, ms",
            _table(times, FLAT),
            "### Other questions, each within its budget of 250 ms and one window: p95, ms",
            "A page may be short and a count capped; both say so, and a cursor goes on from there.",
            _table(times, BUDGETED),
            f"### Filling\n\n{_filling(filled)}",
        ]
    if samples:
        parts += ["### Collecting and redriving, beside a bare copy loop", costs(samples)]
    return "\n\n".join(parts)


def _p95(times: Times, size: int, name: str) -> float:
    return percentile(times[size][name], 0.95) * 1000


def _goals(times: Times) -> str:
    sizes = sorted(times)
    large, small = sizes[-1], sizes[-2] if len(sizes) > 1 else sizes[-1]
    growth = max((_p95(times, large, name) / _p95(times, small, name), name) for name in FLAT)
    slowest = max((_p95(times, large, name), name) for name in FLAT)
    name = f"p95 at {large:,} ÷ p95 at {small:,}, worst: {growth[1]}"
    return tables.goals(
        [
            Goal(name, Spread.of([growth[0]]), at_most=MOST_GROWTH),
            Goal(f"p95 at {large:,}, ms, worst: {slowest[1]}", Spread.of([slowest[0]]), at_most=MOST_MILLIS),
        ]
    )


def _table(times: Times, names: Sequence[str]) -> str:
    sizes = sorted(times)
    rows = [[name, *(markdown.number(_p95(times, size, name)) for size in sizes)] for name in names]
    return markdown.table(["", *(f"{size:,} letters" for size in sizes)], rows)


def _filling(filled: Mapping[int, Mapping[str, float]]) -> str:
    rows = [
        [
            f"{size:,}",
            markdown.number(size / values["collecting"]),
            markdown.number(size / values["indexing"]),
            markdown.number(values["bytes"]),
        ]
        for size, values in sorted(filled.items())
    ]
    return markdown.table(["letters", "collected per second", "texts indexed per second", "bytes per letter"], rows)


def pairs(samples: Samples) -> list[tuple[str, str]]:
    """Of a comparison, each bare loop and what of ours does the same."""
    names = list(samples)
    return [*zip(names[::2], names[1::2], strict=True)]


def costs(samples: Samples) -> str:
    """What a letter costs, beside its bare loop; if there was a server, ratios are about both together."""
    served = any(sample.server_micros for found in samples.values() for sample in found)
    rows = []
    for bare, ours in pairs(samples):
        for name in (bare, ours):
            cells = [markdown.spread(Spread.of(map(tables.micros, samples[name])))]
            if served:
                on_server = Spread.of(sample.server_micros for sample in samples[name])
                cells.append(markdown.spread(on_server) if on_server.high else "")
            ratio = tables.ratio(samples, name, to=bare, of=tables.total_micros)
            rate = Spread.of(map(tables.rate, samples[name]))
            rows.append([name, *cells, markdown.number(ratio.median), markdown.spread(rate)])
    header = ["", "CPU µs per letter", *(["database server: CPU µs per letter"] if served else [])]
    return markdown.table([*header, "÷ bare", "letters per second"], rows)
