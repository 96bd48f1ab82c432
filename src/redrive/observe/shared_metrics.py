"""One page of metrics for several processes: each counts into files of its own, one of them serves the sums.

A process that dies leaves its counts behind, and the next one in its slot goes on from there: a counter never
falls. Metrics of the user's own handlers (`prometheus_client`'s usual ones) appear on the same page.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from prometheus_client import CollectorRegistry, values
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the library's own name for it; child processes inherit it


Counted = tuple[str, Mapping[str, str]]
"""A series that there is already: the metric's name, and its labels."""


def count_in(folder: Path, *, slot: str) -> list[Counted]:
    """Let every metric that this process makes from now on count in `folder`, as the one process in `slot`.

    Returns the counters that earlier processes in this slot have left: they take part in every limit.
    """
    os.environ[_FOLDER] = str(folder)
    forget(folder, slot=slot)
    values.ValueClass = values.MultiProcessValue(lambda: slot)  # type: ignore[no-untyped-call]
    left = folder / f"counter_{slot}.db"
    if not left.exists():
        return []
    keys = [json.loads(key) for key, *_ in MmapedDict.read_all_values_from_file(str(left))]  # type: ignore[no-untyped-call]
    return [(name, labels) for _, name, labels, _ in keys]


def forget(folder: Path, *, slot: str) -> None:
    """Show no gauge any more of the process in `slot`, which has ended; its counts stay. Idempotent."""
    mark_process_dead(slot, str(folder))  # type: ignore[no-untyped-call]


def sums_of(folder: Path) -> CollectorRegistry:
    """What all processes that count in `folder` have counted together, read anew at each scrape."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]
    return registry
