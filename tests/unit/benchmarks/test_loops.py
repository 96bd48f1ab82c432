import asyncio

import pytest

from benchmarks.loops import choose
from benchmarks.runs import RunFailed, run_apart


def test_each_loop_is_what_its_name_says() -> None:
    assert run_apart(f"{__name__}:loop_of", loop="asyncio").startswith("asyncio")
    pytest.importorskip("uvloop")
    assert run_apart(f"{__name__}:loop_of", loop="uvloop").startswith("uvloop")


def loop_of(loop: str) -> str:
    with asyncio.Runner(loop_factory=choose(loop)) as runner:
        return type(runner.get_loop()).__module__


def test_uvloop_cannot_be_imported_beside_the_loop_of_asyncio() -> None:
    with pytest.raises(RunFailed, match="ModuleNotFoundError"):
        run_apart(f"{__name__}:both")


def both() -> None:
    choose("asyncio")
    choose("uvloop")
