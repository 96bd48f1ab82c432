"""Samples as tables: what messages cost, how long they waited, which goals were met."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from benchmarks.markdown import number, spread, table
from benchmarks.measure import Sample, Spread, percentile
from benchmarks.runs import Samples


class Goal(NamedTuple):
    """A figure and its bound; exactly one of `at_most` and `at_least` is given."""

    name: str
    measured: Spread
    at_most: float | None = None
    at_least: float | None = None

    @property
    def met(self) -> bool:
        """Whether the median keeps the bound."""
        return (self.at_most is None or self.measured.median <= self.at_most) and (
            self.at_least is None or self.measured.median >= self.at_least
        )

    @property
    def bound(self) -> str:
        """`at most 1.25`."""
        words = {"at most": self.at_most, "at least": self.at_least}
        return " and ".join(f"{word} {number(value)}" for word, value in words.items() if value is not None)


def micros(sample: Sample) -> float:
    """Microseconds of CPU per message."""
    return sample.micros


def total_micros(sample: Sample) -> float:
    """The same, with those of the server that was used."""
    return sample.micros + sample.server_micros


def rate(sample: Sample) -> float:
    """Messages per second."""
    return sample.rate


def ratio(samples: Samples, name: str, *, to: str, of: Callable[[Sample], float] = micros) -> Spread:
    """A figure of one case divided by that of another, round by round: what slows both down drops out."""
    pairs = zip(samples[name], samples[to], strict=True)
    return Spread.of(of(sample) / of(reference) for sample, reference in pairs)


def goals(items: Sequence[Goal]) -> str:
    rows = [[goal.name, goal.bound, spread(goal.measured), "yes" if goal.met else "**no**"] for goal in items]
    return table(["goal", "bound", "measured", "met"], rows)


def beside(samples: Samples, names: Sequence[str], peers: Mapping[str, str]) -> str:
    """What a message costs in these cases, the first being the reference, and with peers; how these were set up."""
    text = costs(samples, [*names, *peers], reference=names[0])
    return "\n".join([text, "", *(f"- {name}: {settings}" for name, settings in peers.items())]).rstrip()


def costs(samples: Samples, names: Sequence[str], *, reference: str) -> str:
    """What a message costs in each case; with the costs of the server, if one was measured."""
    served = any(sample.server_micros for name in names for sample in samples[name])
    header = ["", "CPU µs per message", "÷ first row", "messages per second", "largest RSS, MB"]
    return table(
        [*header, *(["server: CPU µs per message", "server: RSS, MB"] if served else [])],
        [_costs(samples, name, reference=reference, served=served) for name in names],
    )


def _costs(samples: Samples, name: str, *, reference: str, served: bool) -> list[str]:
    own = samples[name]
    row = [
        name,
        spread(Spread.of(map(micros, own))),
        number(ratio(samples, name, to=reference).median),
        spread(Spread.of(map(rate, own))),
        number(Spread.of(sample.peak_rss / 1e6 for sample in own).high),
    ]
    if served:
        row.append(number(Spread.of(sample.server_micros for sample in own).median))
        row.append(number(Spread.of(sample.server_rss / 1e6 for sample in own).high))
    return row


def times(samples: Samples, names: Sequence[str]) -> str:
    """How long messages waited, in milliseconds, over all runs."""
    rows = []
    for name in names:
        waited = [1000 * seconds for sample in samples[name] for seconds in sample.times]
        shares = [number(percentile(waited, share)) for share in (0.5, 0.99, 1)]
        rows.append([name, *shares, f"{len(waited):,}"])
    return table(["", "half within", "99 % within", "all within", "messages"], rows)
