import os
from pathlib import Path

import pytest

from benchmarks.measure import Sample
from benchmarks.runs import Case, InFiles, RunFailed, run_apart, run_interleaved


def test_a_function_is_called_in_a_process_of_its_own() -> None:
    assert run_apart("builtins:dict", path="a.db", messages=3) == {"path": "a.db", "messages": 3}
    assert run_apart("os:getpid") != run_apart("os:getpid")


def test_a_process_that_fails_is_reported_with_what_it_wrote() -> None:
    with pytest.raises(RunFailed, match=r"(?s)builtins:int ended with 1.*TypeError"):
        run_apart("builtins:int", nonsense=1)


def grow(path: str) -> None:
    with Path(path).open("ab") as file:
        file.write(b"x")


def weigh(path: str) -> dict[str, int]:
    return {"messages": Path(path).stat().st_size}


def test_repeats_are_interleaved_and_a_file_is_kept_only_on_request(tmp_path: Path) -> None:
    told: list[str] = []
    here = "tests.unit.benchmarks.test_runs"
    cases = [
        Case(name="anew", prepare=f"{here}:grow", run=f"{here}:weigh"),
        Case(name="kept", prepare=f"{here}:grow", run=f"{here}:weigh", keeps_file=True),
    ]
    samples = run_interleaved(cases, repeats=2, run=InFiles(tmp_path), told=told.append)

    assert told == ["1/2 anew", "1/2 kept", "2/2 anew", "2/2 kept"]
    assert [sample.messages for sample in samples["anew"]] == [1, 1]
    assert [sample.messages for sample in samples["kept"]] == [1, 2]


def test_what_a_library_prints_does_not_mix_with_the_answer() -> None:
    assert run_apart("tests.unit.benchmarks.test_runs:chat") == "the answer"


def chat() -> str:
    print("a line")
    os.write(1, b"a banner that goes past sys.stdout")
    return "the answer"


def test_a_process_that_does_not_end_is_reported() -> None:
    with pytest.raises(RunFailed, match="was not done after 0 s"):
        run_apart("time:sleep", longest=0.0, secs=60)


def fail(case: Case) -> Sample:
    if "fails" in case.name:
        raise RunFailed("no such server")
    return Sample(messages=1)


def test_an_optional_case_that_fails_is_left_out_and_told() -> None:
    told: list[str] = []
    cases = [Case(name="fails", run="a:b", optional=True), Case(name="works", run="a:b")]
    samples = run_interleaved(cases, repeats=2, run=fail, told=told.append)

    assert {name: len(found) for name, found in samples.items()} == {"works": 2}
    assert told == ["1/2 fails", "fails is left out: no such server", "1/2 works", "2/2 works"]


def test_any_other_case_that_fails_ends_the_benchmark() -> None:
    with pytest.raises(RunFailed, match="no such server"):
        run_interleaved([Case(name="fails", run="a:b")], repeats=1, run=fail)
