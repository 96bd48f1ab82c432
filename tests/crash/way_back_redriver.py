"""`redrive collect --once` as people run it: collects, carries out redrives, hears reports. Made to be killed."""

import importlib
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from redrive.cli import run
from redrive.core.ports import Broker
from redrive.core.redrive import SendBack
from redrive.triage import redriver
from redrive.wiring import connect
from redrive.worker import collector
from tests.crash.scenario import Site

CLAIMED: Final = "claimed, not sent back"
SENT: Final = "sent back, not recorded"
POINTS: Final = (CLAIMED, SENT)

FORGETFUL: Final = "Forgetful"
"""A planted bug: the broker does not remember what it has sent back."""


def stage_send_back(site: Site) -> None:
    """Give the broker of this process points before and behind sending letters back."""
    kind = type(connect(site.scenario.url))
    original = kind.send_back

    async def staged(broker: Broker, items: Sequence[SendBack]) -> Sequence[str]:
        site.points.reach(CLAIMED)
        if site.scenario.bug == FORGETFUL:
            importlib.import_module(site.scenario.module).forget_returns(site)
        message_ids = await original(broker, items)
        site.points.reach(SENT)
        return message_ids

    kind.send_back = staged  # type: ignore[assignment, method-assign]


if __name__ == "__main__":
    here = Site.here()
    redriver.LEASE = timedelta(seconds=1)  # a killed redriver is followed by the next one when its lease is over
    collector.BATCH = 50  # small steps, so that there is something between two of them
    stage_send_back(here)
    os.environ["REDRIVE_BROKER"] = here.scenario.url
    os.environ["REDRIVE_STORE"] = f"sqlite:///{here.folder / 'letters.db'}"
    sys.stdout = sys.stderr
    sys.exit(run(["collect", "--once"]))
