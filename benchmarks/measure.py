"""What a measured process notes: the CPU of all its threads, its memory; and medians with their spread."""

import math
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self


def warm_up(messages: int) -> int:
    """How many of so many messages are not measured: the first tenth."""
    return messages // 10


class Meter:
    """Counts finished messages in a measured process.

    The first tenth warms up, and from there to the last is measured; all of it if they finish in one go. Memory is
    noted after the first tenth, after half, and at the end. `server` is the process of a server whose CPU is noted too.
    """

    def __init__(self, messages: int, *, server: int | None = None) -> None:
        self._wanted = messages
        self._server = server
        self._warm_up = warm_up(messages)
        self._landmarks = [self._warm_up, messages // 2, messages]
        self._rss: list[int] = []
        self._done = 0
        self._from = self._mark()
        self._to: tuple[int, float, float, float] | None = None

    def add(self, count: int) -> bool:
        """Note finished messages; True when those were the last ones wanted."""
        before, self._done = self._done, self._done + count
        while len(self._rss) < len(self._landmarks) and self._done >= self._landmarks[len(self._rss)]:
            self._rss.append(rss())
        if self._done >= self._wanted:
            last, self._to = self._to is None, self._to or self._mark()
            return last
        if before < self._warm_up <= self._done:
            self._from = self._mark()
        return False

    def result(self) -> dict[str, Any]:
        """What was measured, as the fields of a `Sample`."""
        assert self._to is not None, f"only {self._done} of {self._wanted} messages were finished"
        messages, cpu, wall, served = (end - start for start, end in zip(self._from, self._to, strict=True))
        found = {"messages": messages, "cpu": cpu, "wall": wall, "peak_rss": peak_rss(), "rss": self._rss}
        return found if self._server is None else {**found, "server_micros": served / messages * 1e6}

    def _mark(self) -> tuple[int, float, float, float]:
        return self._done, cpu_seconds(), time.perf_counter(), 0.0 if self._server is None else cpu_of(self._server)


def cpu_seconds() -> float:
    """CPU time of this process so far: all threads, user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cpu_of(process: int) -> float:
    """CPU time of another process and its children so far, in seconds. Known on Linux only, in ticks of 10 ms."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    ticks = sum(_ticks(process)) + sum(sum(_ticks(child)[:2]) for child in children)
    return ticks / os.sysconf("SC_CLK_TCK")


def _ticks(process: int | str) -> list[int]:
    """Of itself, user and system; of its children that have ended, user and system."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:  # a child that ended just now is its parent's from now on
        return [0, 0, 0, 0]
    return [int(word) for word in status.rpartition(")")[2].split()[11:15]]


def peak_rss(process: int | str = "self") -> int:
    """The most memory a process has had, in bytes; of another one only where the system tells."""
    try:
        # ru_maxrss may be that of the parent: on Linux it survives exec.
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0]) * 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def rss() -> int:
    """The memory this process has now, in bytes; where the system does not tell, the most it has had."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return peak_rss()
    return pages * resource.getpagesize()


class Sample(NamedTuple):
    """One run of one case.

    `rss` is the memory along the way, in bytes. `times` are durations that it noted, in seconds. A server that was
    used says what it needed: its CPU in microseconds per message, and its memory at the end in bytes. `largest` is the
    largest answer, in bytes.
    """

    messages: int = 0
    cpu: float = 0.0
    wall: float = 0.0
    peak_rss: int = 0
    rss: Sequence[int] = ()
    times: Sequence[float] = ()
    server_micros: float = 0.0
    server_rss: int = 0
    largest: int = 0

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


def machine(folder: Path | None = None) -> str:
    """The shape of this machine, without its name: what a reader needs to compare. `folder`: where files are."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    shape = (
        f"{cores} cores ({platform.machine()}), {platform.system()}, {platform.python_implementation()} "
        f"{platform.python_version()}"
    )
    return shape if folder is None else f"{shape}, files on {_file_system(folder)}"


def _file_system(folder: Path) -> str:
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return "an unknown file system"
    holding = [(len(words[1]), words[2]) for words in mounts if folder.resolve().is_relative_to(words[1])]
    return max(holding)[1]
