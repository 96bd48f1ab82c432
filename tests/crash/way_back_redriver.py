"""`redrive collect --once` as people run it: carries out the redrive and hears its reports. Made to be killed."""

import os
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from functools import partialmethod
from typing import Final

from redrive.brokers.sqlite import SqliteBroker
from redrive.cli import run
from redrive.core.redrive import SendBack
from redrive.triage import redriver
from tests.crash.scenario import Site

CLAIMED: Final = "claimed, not sent back"
SENT: Final = "sent back, not recorded"
POINTS: Final = (CLAIMED, SENT)

FORGETFUL: Final = "Forgetful"
"""A planted bug: the broker does not remember what it has sent back."""


async def staged_send_back(broker: SqliteBroker, items: Sequence[SendBack], *, site: Site) -> Sequence[str]:
    """Send letters back, with a point before and behind it."""
    site.points.reach(CLAIMED)
    if site.scenario.bug == FORGETFUL:
        with closing(sqlite3.connect(site.folder / "queue.db")) as connection, connection:
            connection.execute("DELETE FROM once WHERE key LIKE 'back %'")
    message_ids = await original_send_back(broker, items)
    site.points.reach(SENT)
    return message_ids


original_send_back = SqliteBroker.send_back

if __name__ == "__main__":
    here = Site.here()
    redriver.LEASE = timedelta(seconds=1)  # a killed redriver is followed by the next one when its lease is over
    SqliteBroker.send_back = partialmethod(staged_send_back, site=here)  # type: ignore[assignment, method-assign]
    os.environ["REDRIVE_BROKER"] = here.scenario.url
    os.environ["REDRIVE_STORE"] = f"sqlite:///{here.folder / 'letters.db'}"
    sys.stdout = sys.stderr
    sys.exit(run(["collect", "--once"]))
