"""A fresh process per run, and the runs of all cases by turns."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure import Sample

ROOT = Path(__file__).parents[1]
LONGEST_RUN = 300.0  # seconds

Samples = dict[str, list[Sample]]


class RunFailed(Exception):
    """A measured process ended badly or not at all; the text has what it wrote last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of a benchmark: a program (`module:function`) that is run in a process of its own, with its arguments.

    `prepare` is run before each run, in another process. With `keeps_file` a run finds what the last one left. A case
    that is `optional` is left out once a run of it has failed.
    """

    name: str
    run: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    prepare: str | None = None
    preparation: Mapping[str, Any] = field(default_factory=dict)
    keeps_file: bool = False
    optional: bool = False
    python: str = sys.executable


def run_interleaved(
    cases: Sequence[Case],
    *,
    repeats: int,
    run: Callable[[Case], Sample],
    told: Callable[[str], None] = lambda _: None,
) -> Samples:
    """Every case once, then every case again, so that a machine that slows down does so for all of them.

    An optional case that failed is not in the result. Raises `RunFailed` for any other.
    """
    samples: Samples = {case.name: [] for case in cases}
    for repeat in range(repeats):
        for case in cases:
            if case.name not in samples:
                continue
            told(f"{repeat + 1}/{repeats} {case.name}")
            try:
                samples[case.name].append(run(case))
            except RunFailed as failed:
                if not case.optional:
                    raise
                told(f"{case.name} is left out: {failed}")
                del samples[case.name]
    return samples


class InFiles:
    """Runs cases that get a `path`: each has a file of its own, removed after each run unless the case keeps it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: dict[str, Path] = {}

    def __call__(self, case: Case) -> Sample:
        path = self._paths.setdefault(case.name, self._folder / f"{len(self._paths)}.db")
        if case.prepare is not None:
            run_apart(case.prepare, python=case.python, path=str(path), **case.preparation)
        answer = run_apart(case.run, python=case.python, path=str(path), **case.arguments)
        if not case.keeps_file:
            for left in self._folder.glob(f"{path.name}*"):
                left.unlink()
        return Sample(**answer)


def run_apart(program: str, *, python: str = sys.executable, longest: float = LONGEST_RUN, **arguments: Any) -> Any:
    """Call `module:function` in a fresh process and return its answer, after `longest` seconds at most.

    Raises `RunFailed`.
    """
    words = command(program, python=python, **arguments)
    with tempfile.TemporaryFile() as written:  # a file takes any amount of log lines, and nobody has to read a pipe
        try:
            ended = subprocess.run(
                words, cwd=ROOT, stdout=subprocess.PIPE, stderr=written, check=False, timeout=longest
            )
        except subprocess.TimeoutExpired:
            raise RunFailed(f"{program} was not done after {longest:g} s:\n{_tail(written)}") from None
        if ended.returncode:
            raise RunFailed(f"{program} ended with {ended.returncode}:\n{_tail(written)}")
    return json.loads(ended.stdout)


def command(program: str, *, python: str = sys.executable, **arguments: Any) -> list[str]:
    """The command that calls `module:function` in a process of its own; to be run in `ROOT`."""
    return [python, "-m", "benchmarks.child", program, json.dumps(arguments)]


def _tail(written: Any) -> str:
    written.seek(max(written.seek(0, 2) - 4000, 0))
    return str(written.read().decode(errors="replace"))
