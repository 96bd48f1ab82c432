from pathlib import Path

import pytest

from benchmarks.measure import Meter, Sample, Spread, machine, percentile, rss, warm_up


def test_a_spread_is_the_median_with_the_least_and_the_most() -> None:
    assert Spread.of([5, 1, 3]) == (3, 1, 5)
    assert Spread.of([4, 2]) == (3, 2, 4)


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (1, 100), (0, 1)])
def test_a_percentile_is_the_value_that_this_share_does_not_exceed(share: float, expected: float) -> None:
    assert percentile(range(100, 0, -1), share) == expected


def test_a_sample_tells_cpu_per_message_and_messages_per_second() -> None:
    sample = Sample(messages=2_000, cpu=0.01, wall=0.5, peak_rss=1)

    assert (sample.micros, sample.rate) == (5, 4_000)


def test_the_first_tenth_of_the_messages_is_not_measured() -> None:
    meter = Meter(100)
    ends = [meter.add(5) for _ in range(20)]
    result = meter.result()

    assert ends == [False] * 19 + [True]
    assert result["messages"] == 90
    assert result["wall"] > 0
    assert result["peak_rss"] > 1_000_000
    assert warm_up(100) == 10


def test_memory_is_noted_after_a_tenth_after_half_and_at_the_end() -> None:
    meter = Meter(100)
    for _ in range(20):
        meter.add(5)

    assert [0.5 < noted / rss() < 2 for noted in meter.result()["rss"]] == [True, True, True]


def test_messages_that_finish_in_one_go_are_all_measured() -> None:
    meter = Meter(100)

    assert [meter.add(100), meter.add(1)] == [True, False]
    assert meter.result()["messages"] == 100
    assert len(meter.result()["rss"]) == 3


def test_a_meter_that_has_not_seen_every_message_has_no_result() -> None:
    meter = Meter(100)
    meter.add(99)

    with pytest.raises(AssertionError, match="99 of 100"):
        meter.result()


def test_the_shape_of_the_machine_names_cores_python_and_the_file_system(tmp_path: Path) -> None:
    shape = machine(tmp_path)

    assert "cores" in shape
    assert "Python 3." in shape
    assert "files on" in shape
    assert "files on" not in machine()
