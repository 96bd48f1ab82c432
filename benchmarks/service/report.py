"""The results on the service as Markdown."""

from collections.abc import Mapping, Sequence

from benchmarks import markdown, tables
from benchmarks.measure import Sample, Spread, percentile
from benchmarks.runs import Samples
from benchmarks.service.questions import PAGES, READS, Read
from benchmarks.store.report import costs, pairs
from benchmarks.tables import Goal

MOST_MILLIS = 100.0
MOST_KILOBYTES = 150.0
MOST_FIRST_VIEW = 500.0  # milliseconds
MOST_CPU = 4.0


def name_of(part: str, read: str, *, store: str) -> str:
    """The name of a case that asks this."""
    return f"{store}, {part}: {read}"


def reads(samples: Samples, *, filled: Mapping[str, Mapping[str, float]], conditions: str) -> str:
    """How long answers took by store, and how the stores were filled."""
    parts = [conditions, tables.goals([_slowest(samples, "reads", READS, store=store) for store in filled])]
    for store in filled:
        parts += [f"### {store}", _answers(samples, "reads", READS, store=store)]
    return "\n\n".join([*parts, "### Filling", _filling(filled)])


def pages(samples: Samples, views: Mapping[str, Sequence[float]], *, conditions: str) -> str:
    """How long pages took by store, how large they are, and when a visitor saw the first of one."""
    stores = [*views]
    goals = [_slowest(samples, "pages", PAGES, store=store) for store in stores]
    goals += [_largest(samples, store) for store in stores]
    goals += [
        Goal(f"{store}: first view, ms, Chromium", Spread.of(one * 1000 for one in times), at_most=MOST_FIRST_VIEW)
        for store, times in views.items()
    ]
    parts = [f"{conditions} {_PAGE}", tables.goals(goals)]
    for store in stores:
        parts += [f"### {store}: pages", _answers(samples, "pages", PAGES, store=store)]
    return "\n\n".join(parts)


_PAGE = (
    "A page is without its style and script, which a browser keeps. A preview of an incident reads and freezes all of "
    "its letters, one in 200 of those there are."
)


def copying(samples: Samples, *, conditions: str) -> str:
    """What a letter costs on its way in and back, beside bare loops."""
    goals = [
        Goal(f"CPU ÷ bare: {ours}", tables.ratio(samples, ours, to=bare, of=tables.total_micros), at_most=MOST_CPU)
        for bare, ours in pairs(samples)
    ]
    return "\n\n".join([conditions, tables.goals(goals), costs(samples)])


def _slowest(samples: Samples, part: str, asked: Mapping[str, Read], *, store: str) -> Goal:
    taken = {read: _within(samples[name_of(part, read, store=store)], 0.95) for read in asked}
    read = max(taken, key=lambda read: taken[read].median)
    return Goal(f"{store}: p95, ms, worst: {read}", taken[read], at_most=MOST_MILLIS)


def _largest(samples: Samples, store: str) -> Goal:
    weights = {
        read: Spread.of(run.largest / 1000 for run in samples[name_of("pages", read, store=store)]) for read in PAGES
    }
    read = max(weights, key=lambda read: weights[read].median)
    return Goal(f"{store}: page weight, kB, worst: {read}", weights[read], at_most=MOST_KILOBYTES)


def _within(runs: Sequence[Sample], share: float) -> Spread:
    """Milliseconds within which this share of a run's answers came."""
    return Spread.of(percentile(run.times, share) * 1000 for run in runs)


def _answers(samples: Samples, part: str, asked: Mapping[str, Read], *, store: str) -> str:
    found = {read: samples[name_of(part, read, store=store)] for read in asked}
    served = any(run.server_micros for runs in found.values() for run in runs)
    header = ["", "p50, ms", "p95, ms", "service: CPU ms per request", "service: largest RSS, MB", "largest answer, kB"]
    rows = []
    for read, runs in found.items():
        spreads = [_within(runs, 0.5), _within(runs, 0.95), Spread.of(run.micros / 1000 for run in runs)]
        largest = [max(run.peak_rss for run in runs) / 1e6, max(run.largest for run in runs) / 1e3]
        row = [read, *map(markdown.spread, spreads), *map(markdown.number, largest)]
        if served:
            row.append(markdown.spread(Spread.of(run.server_micros / 1000 for run in runs)))
        rows.append(row)
    return markdown.table([*header, *(["database server: CPU ms per request"] if served else [])], rows)


def _filling(filled: Mapping[str, Mapping[str, float]]) -> str:
    rows = []
    for store, of in filled.items():
        rate = of["letters"] / (of["collecting"] + of["indexing"])
        rows.append([store, markdown.number(rate), markdown.number(of["bytes"] / of["letters"])])
    return markdown.table(["", "collected and indexed per second", "bytes per letter"], rows)
