from pathlib import Path

import pytest

from benchmarks.measure import Case, Meter, Sample, Spread, machine, percentile, run_apart, run_interleaved


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


def test_messages_that_finish_in_one_go_are_all_measured() -> None:
    meter = Meter(100)

    assert [meter.add(100), meter.add(1)] == [True, False]
    assert meter.result()["messages"] == 100


def test_a_meter_that_has_not_seen_every_message_has_no_result() -> None:
    meter = Meter(100)
    meter.add(99)

    with pytest.raises(AssertionError, match="99 of 100"):
        meter.result()


def test_a_function_is_called_in_a_process_of_its_own() -> None:
    assert run_apart("builtins:dict", path="a.db", messages=3) == {"path": "a.db", "messages": 3}
    assert run_apart("os:getpid") != run_apart("os:getpid")


def test_a_process_that_fails_is_reported_with_what_it_wrote() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)builtins:int ended with 1.*TypeError"):
        run_apart("builtins:int", nonsense=1)


def grow(path: str) -> None:
    with Path(path).open("ab") as file:
        file.write(b"x")


def weigh(path: str) -> dict[str, int]:
    return {"messages": Path(path).stat().st_size}


def test_repeats_are_interleaved_and_a_file_is_kept_only_on_request(tmp_path: Path) -> None:
    told: list[str] = []
    here = "tests.unit.benchmarks.test_measure"
    cases = [
        Case(name="anew", prepare=f"{here}:grow", run=f"{here}:weigh"),
        Case(name="kept", prepare=f"{here}:grow", run=f"{here}:weigh", keeps_file=True),
    ]
    samples = run_interleaved(cases, repeats=2, folder=tmp_path, told=told.append)

    assert told == ["1/2 anew", "1/2 kept", "2/2 anew", "2/2 kept"]
    assert [sample.messages for sample in samples["anew"]] == [1, 1]
    assert [sample.messages for sample in samples["kept"]] == [1, 2]


def test_the_shape_of_the_machine_names_cores_python_and_the_file_system(tmp_path: Path) -> None:
    shape = machine(tmp_path)

    assert "cores" in shape
    assert "Python 3." in shape
    assert "files on" in shape
