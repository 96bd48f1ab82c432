"""Sends the planned messages; started again after a kill, it goes on with those it has not tried yet."""

import asyncio
from collections.abc import Iterator, Sequence

from redrive.app import App
from redrive.core.errors import BrokerError
from tests.crash.journal import Reader, Word
from tests.crash.plan import HEADERS, Plan, deal
from tests.crash.scenario import GROUP, Site
from tests.crash.staged import open_broker

TOGETHER = 10  # publishes under way at once
AHEAD = 200  # messages sent and not started: more are sent when there are fewer
PATIENCE = 100  # looks at the journal before more are sent all the same
LOOK = 0.01
PAUSE = 1.0  # seconds after a failure: where there is no server, each of them fails at once


async def produce(site: Site) -> None:
    """Send everything that was not tried before, at the pace of the workers."""
    reader = Reader(site.folder / "journal")
    tried = {entry.id for entry in reader.of(Word.INVOKE)}
    left = [plan for plan in deal_for(site) if plan.id not in tried]
    async with App(open_broker(site), name=GROUP) as app:
        for some in _some_at_a_time(left):
            await _wait_for_workers(reader)
            await asyncio.gather(*(_send(site, app, plan) for plan in some))


def deal_for(site: Site) -> Sequence[Plan]:
    """The messages of a run: the same ones every time it is asked."""
    scenario = site.scenario
    return deal(f"s{scenario.seed}", scenario.messages, seed=scenario.seed, mix=scenario.mix)


async def _send(site: Site, app: App, plan: Plan) -> None:
    site.journal.note(Word.INVOKE, id=plan.id)
    try:
        await app.publish(plan.queue, plan.body, headers=HEADERS)
    except BrokerError:
        site.journal.note(Word.UNKNOWN, id=plan.id)
        await asyncio.sleep(PAUSE)
    else:
        site.journal.note(Word.OK, id=plan.id)


async def _wait_for_workers(reader: Reader) -> None:
    for _ in range(PATIENCE):
        known = {entry.id for word in (Word.START, Word.UNKNOWN) for entry in reader.of(word)}  # some may never come
        if len(reader.of(Word.INVOKE)) - len(known) < AHEAD:
            return
        await asyncio.sleep(LOOK)


def _some_at_a_time(plans: Sequence[Plan]) -> Iterator[Sequence[Plan]]:
    return (plans[at : at + TOGETHER] for at in range(0, len(plans), TOGETHER))


if __name__ == "__main__":
    asyncio.run(produce(Site.here()))
