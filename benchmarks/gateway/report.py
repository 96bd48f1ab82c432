"""The results of the gateway as Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import markdown, tables
from benchmarks.gateway.cases import BARE, IN_FLIGHT, JOURNAL, MEMORY, NO_JOURNAL, OURS, named
from benchmarks.gateway.provider import FAULTS
from benchmarks.measure import Spread, percentile
from benchmarks.runs import Samples
from benchmarks.tables import Goal

MOST_OF_BARE = 1.8
LEAST_OF = {"litellm": 15.0, "async-batch-llm": 1.0}
MOST_MEMORY = 40.0  # MiB
MOST_LATE = 5.0  # milliseconds

MEANT = {
    "retry-after-2": "429 once, `Retry-After: 2`",
    "retry-after-ms": "429 once, `retry-after-ms: 1500`",
    "retry-after-61": "429 for ever, `Retry-After: 61`",
    "quota": "429 `insufficient_quota`",
    "should-not-retry": "500, `x-should-retry: false`",
    "cut-json": "half an answer, once",
    "error-in-200": "an error in a 200, once",
    "silent": "never answers",
    "dribble": "a byte every 250 ms, for ever",
    "down": "500 for ever",
}

Met = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""How each client ended before each fault: what was said, after how many seconds, and when it came."""


def report(samples: Samples, *, conditions: str, peers: Mapping[str, str], met: Met) -> str:
    """Everything a reader needs. `peers` are their settings by name."""
    parts = [conditions, tables.goals(_goals(samples, list(peers)))]
    for in_flight in IN_FLIGHT:
        names = [named(client, in_flight) for client in (BARE, OURS, *peers)]
        rows = [name for name in names if name in samples]
        if rows:
            parts += [f"### {in_flight} in flight", tables.costs(samples, rows, reference=rows[0])]
    if peers:
        parts.append("\n".join(f"- {name}: {settings}" for name, settings in peers.items()))
    if JOURNAL in samples:
        words = "How late an event loop is that sleeps 2 ms at a time, with a thread that writes the journal beside it."
        parts += ["### The journal", words, tables.times(samples, [NO_JOURNAL, JOURNAL])]
    if met:
        parts += ["### Faults", _WORDS, _faults(met)]
    return "\n\n".join(parts)


_WORDS = """\
Two retries, 2 s for an attempt, cut after 12 s. What the caller was told, after how long; how often the provider was
asked, and how long after the first time the second one came."""


def _goals(samples: Samples, peers: Sequence[str]) -> list[Goal]:
    goals = []
    for in_flight in IN_FLIGHT:
        ours, bare = named(OURS, in_flight), named(BARE, in_flight)
        if ours not in samples:
            continue
        cpu = tables.ratio(samples, ours, to=bare)
        goals.append(Goal(f"{in_flight} in flight: CPU per request, Redrive ÷ aiohttp", cpu, at_most=MOST_OF_BARE))
        for peer in peers:
            least = LEAST_OF.get(peer.partition(" ")[0])
            if least is not None and named(peer, in_flight) in samples:
                cpu = tables.ratio(samples, named(peer, in_flight), to=ours)
                goals.append(Goal(f"{in_flight} in flight: CPU per request, {peer} ÷ Redrive", cpu, at_least=least))
    if MEMORY in samples:
        grown = Spread.of((sample.rss[1] - sample.rss[0]) / 2**20 for sample in samples[MEMORY])
        goals.append(Goal("MiB for 10,000 queued requests", grown, at_most=MOST_MEMORY))
    if JOURNAL in samples:
        late = Spread.of(1000 * percentile(sample.times, 0.99) for sample in samples[JOURNAL])
        goals.append(Goal("journal: ms the event loop is late, 99 %", late, at_most=MOST_LATE))
    return goals


def _faults(met: Met) -> str:
    rows = [[MEANT[fault], *(_cell(ends[fault]) for ends in met.values())] for fault in FAULTS]
    return markdown.table(["the provider", *met], rows)


def _cell(end: Mapping[str, Any]) -> str:
    visits = end["visits"]
    again = f", again after {visits[1] - visits[0]:.1f} s" if len(visits) > 1 else ""
    return f"{end['said']}, {end['seconds']:.1f} s; asked {_times(len(visits))}{again}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
