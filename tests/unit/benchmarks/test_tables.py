import pytest

from benchmarks import tables
from benchmarks.measure import Sample, Spread
from benchmarks.tables import Goal


def sample(micros: float, *, rate: float = 1000, server: float = 0) -> Sample:
    return Sample(messages=1000, cpu=micros / 1000, wall=1000 / rate, peak_rss=30_000_000, server_micros=server)


def test_a_ratio_is_taken_round_by_round() -> None:
    samples = {"hand": [sample(2), sample(4)], "ours": [sample(3), sample(5)]}

    assert tables.ratio(samples, "ours", to="hand") == pytest.approx(Spread(1.375, 1.25, 1.5))


@pytest.mark.parametrize(
    ("goal", "met", "bound"),
    [
        (Goal("cpu", Spread(1.2, 1, 2), at_most=1.25), True, "at most 1.25"),
        (Goal("cpu", Spread(1.3, 1, 2), at_most=1.25), False, "at most 1.25"),
        (Goal("rate", Spread(0.8, 0.7, 2), at_least=0.8), True, "at least 0.8"),
        (Goal("rate", Spread(0.7, 0.6, 2), at_least=0.8), False, "at least 0.8"),
    ],
)
def test_a_goal_is_met_if_its_median_keeps_the_bound(goal: Goal, *, met: bool, bound: str) -> None:
    assert (goal.met, goal.bound) == (met, bound)


def test_a_goal_that_is_missed_stands_out() -> None:
    text = tables.goals([Goal("cpu", Spread.of([1.3, 1.3]), at_most=1.25)])

    assert text.splitlines()[-1] == "| cpu | at most 1.25 | 1.3 | **no** |"


def test_costs_show_the_server_only_where_one_was_measured() -> None:
    alone = tables.costs({"ours": [sample(3)]}, ["ours"], reference="ours")
    served = tables.costs({"ours": [sample(3, server=2)]}, ["ours"], reference="ours")

    assert alone.splitlines()[-1] == "| ours | 3 | 1 | 1,000 | 30 |"
    assert served.splitlines()[-1] == "| ours | 3 | 1 | 1,000 | 30 | 2 | 0 |"


def test_times_are_percentiles_over_all_runs() -> None:
    samples = {"ours": [Sample(times=[0.001, 0.002]), Sample(times=[0.003])]}

    assert tables.times(samples, ["ours"]).splitlines()[-1] == "| ours | 2 | 3 | 3 | 3 |"
