"""What all benchmarks share: a fresh process per case, the CPU of all its threads, medians with their spread."""

import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

ROOT = Path(__file__).parents[1]


class Meter:
    """Counts finished messages in a measured process.

    The first tenth warms up, and from there to the last is measured; all of it if they finish in one go.
    """

    def __init__(self, messages: int) -> None:
        self._wanted = messages
        self._warm_up = messages // 10
        self._warm = False
        self._done = 0
        self._from = self._mark()
        self._to: tuple[int, float, float] | None = None

    def add(self, count: int) -> bool:
        """Note finished messages; True when those were the last ones wanted."""
        self._done += count
        if self._done >= self._wanted:
            last, self._to = self._to is None, self._to or self._mark()
            return last
        if not self._warm and self._done >= self._warm_up:
            self._warm, self._from = True, self._mark()
        return False

    def result(self) -> dict[str, Any]:
        """What was measured, as the fields of a `Sample`."""
        assert self._to is not None, f"only {self._done} of {self._wanted} messages were finished"
        messages, cpu, wall = (end - start for start, end in zip(self._from, self._to, strict=True))
        return {"messages": messages, "cpu": cpu, "wall": wall, "peak_rss": peak_rss()}

    def _mark(self) -> tuple[int, float, float]:
        return self._done, cpu_seconds(), time.perf_counter()


def cpu_seconds() -> float:
    """CPU time of this process so far: all threads, user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_rss() -> int:
    """The most memory this process has had, in bytes."""
    try:
        # ru_maxrss may be that of the parent: on Linux it survives exec.
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0]) * 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class Sample(NamedTuple):
    """One run of one case. `times` are durations that it noted, in seconds."""

    messages: int = 0
    cpu: float = 0.0
    wall: float = 0.0
    peak_rss: int = 0
    times: Sequence[float] = ()

    @property
    def micros(self) -> float:
        """Microseconds of CPU per message."""
        return self.cpu / self.messages * 1e6

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.wall


class Spread(NamedTuple):
    """A median with the least and the most it is the median of."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        known = sorted(values)
        return cls(statistics.median(known), known[0], known[-1])


def percentile(values: Iterable[float], share: float) -> float:
    """The value that this share of all values does not exceed (nearest rank)."""
    known = sorted(values)
    return known[max(math.ceil(share * len(known)) - 1, 0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of a benchmark: a program (`module:function`) that is run in a process of its own, with its arguments.

    `prepare` is run before each run, in another process. With `keeps_file` a run finds what the last one left.
    """

    name: str
    run: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    prepare: str | None = None
    preparation: Mapping[str, Any] = field(default_factory=dict)
    keeps_file: bool = False
    python: str = sys.executable


Samples = dict[str, list[Sample]]


def run_interleaved(
    cases: Sequence[Case], *, repeats: int, folder: Path, told: Callable[[str], None] = lambda _: None
) -> Samples:
    """Every case once, then every case again, so that a machine that slows down does so for all of them."""
    samples: Samples = {case.name: [] for case in cases}
    for repeat in range(repeats):
        for number, case in enumerate(cases):
            told(f"{repeat + 1}/{repeats} {case.name}")
            path = folder / f"{number}.db"
            if case.prepare is not None:
                run_apart(case.prepare, python=case.python, path=str(path), **case.preparation)
            answer = run_apart(case.run, python=case.python, path=str(path), **case.arguments)
            samples[case.name].append(Sample(**answer))
            if not case.keeps_file:
                for left in folder.glob(f"{path.name}*"):
                    left.unlink()
    return samples


def run_apart(program: str, *, python: str = sys.executable, **arguments: Any) -> Any:
    """Call `module:function` in a fresh process and return its answer. Raises `RuntimeError` with what it wrote."""
    with tempfile.TemporaryFile() as written:  # a file takes any amount of log lines, and nobody has to read a pipe
        ended = subprocess.run(
            command(program, python=python, **arguments), cwd=ROOT, stdout=subprocess.PIPE, stderr=written, check=False
        )
        if ended.returncode:
            written.seek(max(written.tell() - 4000, 0))
            raise RuntimeError(f"{program} ended with {ended.returncode}:\n{written.read().decode(errors='replace')}")
    return json.loads(ended.stdout)


def command(program: str, *, python: str = sys.executable, **arguments: Any) -> list[str]:
    """The command that calls `module:function` in a process of its own; to be run in `ROOT`."""
    return [python, "-m", "benchmarks.child", program, json.dumps(arguments)]


def machine(folder: Path) -> str:
    """The shape of this machine, without its name: what a reader needs to compare."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{cores} cores ({platform.machine()}), {platform.system()}, {platform.python_implementation()} "
        f"{platform.python_version()}, files on {_file_system(folder)}"
    )


def _file_system(folder: Path) -> str:
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return "an unknown file system"
    holding = [(len(words[1]), words[2]) for words in mounts if folder.resolve().is_relative_to(words[1])]
    return max(holding)[1]
