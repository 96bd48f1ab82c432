"""`redrive serve` as a process of its own, with collector and redriver."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.runs import RunFailed

_LIMITS = {"REDRIVE_SERVICE_RATE_LIMIT": "1000000"}  # requests a second: one client asks all of them


@contextmanager
def serving(store: str, folder: Path) -> Iterator[tuple[str, int]]:
    """A service over a store and an empty broker: its URL and its process, until the end of the block.

    Raises `RunFailed`.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REDRIVE_")}
    words = ("--broker", f"sqlite:///{folder / 'broker.db'}", "--store", store, "--port", "0", "--json")
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "redrive.cli", "serve", *words],
            cwd=folder,
            env=clean | _LIMITS,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        with process:
            try:
                assert process.stdout is not None
                said = process.stdout.readline()
                if not said:
                    log.seek(0)
                    raise RunFailed(f"redrive serve ended with {process.wait()}:\n{log.read()[-4000:]}")
                yield json.loads(said)["url"], process.pid
            finally:
                process.terminate()
