"""The results on Redis as Markdown."""

from collections.abc import Mapping, Sequence

from benchmarks import markdown, tables
from benchmarks.measure import Sample, Spread, percentile
from benchmarks.redis.cases import (
    HAND,
    HAND_DUE,
    HAND_FAILING,
    HAND_WAITING,
    MEMORY,
    OURS,
    OURS_FAILING,
    OURS_FAILING_ALOUD,
    OURS_WAITING,
    RETRY,
    TRACED,
    TYPED,
)
from benchmarks.runs import Samples
from benchmarks.tables import Goal

MOST_CPU = 1.25
LEAST_RATE = 0.8
MOST_WAITING = 1.3
MOST_GROWTH = 1.1
LEAST_CPU_OF = {"dramatiq": 30.0, "faststream batch": 3.0}  # peers by package and mode

_FAILING = """\
Retries without delay. The first loop adds a failed message to the stream again: every group gets it, it is tried at
once, and its earlier failures are forgotten. The second keeps it with its group, due at a time, with its attempts, as
Redrive does; neither knows owners or crashes. After each run every message was found handled or dead, once."""


def report(samples: Samples, *, conditions: str, peers: Mapping[str, str], backlog: int) -> str:
    """Everything a reader needs. `peers` are the settings of peers by the name of their case."""
    failing = {name: settings for name, settings in peers.items() if name.endswith(" failing")}
    healthy = {name: settings for name, settings in peers.items() if name not in failing}
    parts = [conditions, tables.goals(_goals(samples, healthy, backlog=backlog))]
    if HAND in samples:
        parts += ["### Nothing fails", tables.beside(samples, [HAND, OURS, TYPED, TRACED], healthy)]
    if HAND_FAILING in samples:
        rows = [HAND_FAILING, HAND_DUE, OURS_FAILING, OURS_FAILING_ALOUD]
        parts += [
            "### Every tenth message fails three times and becomes a dead letter",
            _FAILING,
            tables.beside(samples, rows, failing),
        ]
    if HAND_WAITING in samples:
        parts += [
            "### Low load",
            "A message every 20 ms on average; from its publishing by another process to its handler, in milliseconds.",
            tables.times(samples, [HAND_WAITING, OURS_WAITING, RETRY]),
        ]
    if MEMORY in samples:
        parts += [f"### Memory along a backlog of {backlog:,}", _memory(samples)]
    return "\n\n".join(parts)


def _goals(samples: Samples, peers: Mapping[str, str], *, backlog: int) -> list[Goal]:
    goals: list[Goal] = []
    if HAND in samples:
        rate = tables.ratio(samples, OURS, to=HAND, of=tables.rate)
        goals += [
            Goal("CPU per message, Redrive ÷ hand-written", tables.ratio(samples, OURS, to=HAND), at_most=MOST_CPU),
            Goal("rate, Redrive ÷ hand-written", rate, at_least=LEAST_RATE),
            *_peer_goals(samples, list(peers)),
        ]
    if HAND_FAILING in samples:
        goals += [
            Goal(f"10 % failing: CPU per message, {OURS_FAILING} ÷ {name}", cpu, at_most=MOST_CPU)
            for hand, name in ((HAND_DUE, "hand-written, the same"), (HAND_FAILING, "hand-written, added again"))
            for cpu in [tables.ratio(samples, OURS_FAILING, to=hand)]
        ]
    if HAND_WAITING in samples:
        half = tables.ratio(samples, OURS_WAITING, to=HAND_WAITING, of=_half_within)
        goals.append(Goal("low load: half are handled within, Redrive ÷ bare loop", half, at_most=MOST_WAITING))
    if MEMORY in samples:
        growth = Spread.of(sample.rss[-1] / sample.rss[0] for sample in samples[MEMORY])
        goals.append(Goal(f"RSS at the end ÷ after a tenth of {backlog:,}", growth, at_most=MOST_GROWTH))
    return goals


def _peer_goals(samples: Samples, peers: Sequence[str]) -> list[Goal]:
    goals = []
    for peer in peers:
        package, _, *mode = peer.split()
        least = LEAST_CPU_OF.get(" ".join([package, *mode]))
        if least is not None:
            cpu = tables.ratio(samples, peer, to=OURS)
            goals.append(Goal(f"CPU per message, {peer} ÷ Redrive", cpu, at_least=least))
    if peers:
        fastest = max(peers, key=lambda peer: Spread.of(map(tables.rate, samples[peer])).median)
        rate = tables.ratio(samples, OURS, to=fastest, of=tables.rate)
        goals.append(Goal(f"rate, Redrive ÷ the fastest peer, {fastest}", rate, at_least=1))
    return goals


def _half_within(sample: Sample) -> float:
    return percentile(sample.times, 0.5)


def _memory(samples: Samples) -> str:
    course = [Spread.of(values) for values in zip(*(sample.rss for sample in samples[MEMORY]), strict=True)]
    cells = [markdown.spread(Spread(*(value / 1e6 for value in values))) for values in course]
    return markdown.table(["RSS, MB", "after a tenth", "after half", "at the end"], [[MEMORY, *cells]])
