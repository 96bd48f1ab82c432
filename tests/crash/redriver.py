"""Sends every dead letter back once; started again after a kill, it goes on with what is left."""

import asyncio

from tests.crash.inspection import entries_of
from tests.crash.plan import QUEUES
from tests.crash.scenario import Site
from tests.crash.staged import open_broker


async def redrive_all(site: Site) -> None:
    """Send back what was never sent back before: a letter that relapses stays, for the checker to find."""
    broker = open_broker(site)
    try:
        for queue in QUEUES:
            letters = broker.dead_letters(queue)
            for entry in await entries_of(letters):
                if entry.letter.generation:
                    continue
                site.points.reach("before a redrive")
                await letters.redrive(entry.entry_id)
                site.points.reach("after a redrive, before its answer")
    finally:
        await broker.aclose()


if __name__ == "__main__":
    asyncio.run(redrive_all(Site.here()))
