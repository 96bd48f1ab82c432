"""The provider for all runs, and how cases are run before it."""

import contextlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

from benchmarks.measure import Sample
from benchmarks.runs import ROOT, Case, run_apart


@contextlib.contextmanager
def provider() -> Iterator["Server"]:
    """A provider that answers, for as long as the block lasts."""
    words = [sys.executable, "-m", "benchmarks.gateway.provider"]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Server(f"http://127.0.0.1:{int(process.stdout.readline())}")
    finally:
        process.terminate()
        process.wait()


class Server:
    """Runs cases that get the provider's `url`."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, case: Case) -> Sample:
        return Sample(**run_apart(case.run, python=case.python, url=self.url, **case.arguments))

    def meet(self, program: str, *, python: str) -> Any:
        """How a client ends before each fault."""
        return run_apart(program, python=python, url=self.url)

    def visits(self) -> dict[str, list[float]]:
        """When each client has come to each fault: `FAULT CLIENT`, in seconds."""
        with urllib.request.urlopen(f"{self.url}/visits", timeout=10) as answer:  # noqa: S310 - ours
            found: dict[str, list[float]] = json.load(answer)
        return found
