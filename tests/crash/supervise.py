"""Runs the workers of a crash test as `redrive worker` does: under the supervisor, in real processes."""

import sys

from redrive.cli.worker import worker
from redrive.worker import supervisor
from tests.crash.scenario import Site

if __name__ == "__main__":
    # The nemesis kills more often than any program that is worth being started again: no growing pause between starts.
    supervisor.SOON = 0.0
    sys.exit(worker("tests.crash.app:app", processes=Site.here().scenario.processes, no_collect=True))
