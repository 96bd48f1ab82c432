"""One page of metrics for several processes: each counts into files of its own, one of them serves the sums.

A process that dies leaves its counts behind, and the next one in its slot goes on from there: a counter never
falls. Metrics of the user's own handlers (`prometheus_client`'s usual ones) appear on the same page.
"""

import os
from pathlib import Path

from prometheus_client import CollectorRegistry, values
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the library's own name for it; child processes inherit it


def count_in(folder: Path, *, slot: str) -> None:
    """Let every metric that this process makes from now on count in `folder`, as the one process in `slot`."""
    os.environ[_FOLDER] = str(folder)
    mark_process_dead(slot, str(folder))  # type: ignore[no-untyped-call]
    values.ValueClass = values.MultiProcessValue(lambda: slot)  # type: ignore[no-untyped-call]


def sums_of(folder: Path) -> CollectorRegistry:
    """What all processes that count in `folder` have counted together, read anew at each scrape."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]
    return registry
