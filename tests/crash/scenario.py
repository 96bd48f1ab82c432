"""What one run is made of; every process of the run reads it from the run's folder."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.crash.journal import Journal
from tests.crash.plan import MIX, Fate
from tests.crash.points import Points

FOLDER = "CRASH_FOLDER"  # the environment variable that leads a process to its run
FLIPPED = "CRASH_FLIPPED"  # set when every fate has turned to ok

GROUP = "crash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One run. `kills` counts what the nemesis does at random; named points come on top.

    At each of `points` one process is killed, at each of `stops` one stands still until its lease is over.
    `module` is the adapter's, which every process calls. `bug` names a planted one. Times are in seconds, and short: a
    run waits for leases and retries again and again.
    """

    url: str = ""
    seed: int = 1
    messages: int = 2200
    kills: int = 10
    mix: Mapping[Fate, float] = field(default_factory=lambda: MIX)
    processes: int = 2
    concurrency: int = 8
    prefetch: int = 8
    lease: float = 1.5
    retries: int = 3
    retry_delay: float = 0.1
    crash_limit: int = 3
    pause: float = 0.01
    points: Sequence[str] = ()
    stops: Sequence[str] = ()
    module: str = ""
    bug: str = ""

    def save(self, folder: Path) -> None:
        """Write it where the processes of the run will look."""
        (folder / "scenario.json").write_text(json.dumps(asdict(self)))


@dataclass(frozen=True, slots=True)
class Site:
    """The folder of a run: its scenario, its journal, its points."""

    folder: Path
    scenario: Scenario
    journal: Journal
    points: Points

    @property
    def role(self) -> str:
        """What this process is for: a child of the supervisor is told on its command line."""
        return sys.argv[sys.argv.index("--role") + 1] if "--role" in sys.argv else Path(sys.argv[0]).stem

    @classmethod
    def at(cls, folder: Path) -> "Site":
        """Open the folder of a run."""
        known: dict[str, Any] = json.loads((folder / "scenario.json").read_text())
        known["mix"] = {Fate(name): share for name, share in known["mix"].items()}
        journal = Journal(folder / "journal")
        return cls(folder, Scenario(**known), journal, Points(folder / "points", journal))

    @classmethod
    def here(cls) -> "Site":
        """The run that this process belongs to."""
        return cls.at(Path(os.environ[FOLDER]))
