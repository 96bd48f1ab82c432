"""`redrive collect`: from the broker's DLQs into the letter store, and letters on their way back."""

import asyncio
import signal
from collections.abc import Coroutine
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from redrive.cli.desk import BOTH, AtBoth, open_desk
from redrive.cli.output import tell
from redrive.cli.target import open_broker
from redrive.core.ports.store import Collected
from redrive.triage.desk import Desk

if TYPE_CHECKING:
    from redrive.worker.collector import Collector

POLL = 0.2


async def collect(
    *,
    once: Annotated[bool, Parameter(help="Until nothing is left to collect and no redrive runs; then end.")] = False,
    queue: Annotated[tuple[str, ...], Parameter(help="Only from this queue's DLQ; may be given often.")] = (),
    keep: Annotated[bool, Parameter(help="Copy letters and leave their entries in the DLQ.")] = False,
    at: AtBoth = BOTH,
) -> None:
    """Collect dead letters into the store and carry out redrives, until SIGTERM or SIGINT.

    Many such processes may run at once: they share the work.
    """
    from redrive.config import load_settings
    from redrive.observe.logs import set_up_logs
    from redrive.wiring import way_back

    target = at.target
    settings = load_settings()
    set_up_logs(level=settings.log_level, form=settings.log_format, color=settings.color)
    async with open_broker(target, create=not once) as broker, open_desk(at, create=True) as desk:
        await desk.store.unfinished()  # a store that cannot be used is told now, not in a log
        async with way_back(broker, desk.store, queues=queue or None, keep=keep, clock=desk.clock) as collecting:
            await _until_told(_nothing_left(desk, collecting) if once else asyncio.Event().wait())
        done = collecting.collected
    tell(asdict(done), _words(done), as_json=at.json)


async def _nothing_left(desk: Desk, collecting: "Collector") -> None:
    while True:
        await collecting.drained()
        if not await desk.store.unfinished():
            await collecting.drained()  # what the last redrive brought back
            return
        await asyncio.sleep(POLL)


async def _until_told(work: Coroutine[Any, Any, object]) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(work), asyncio.create_task(stop.wait())]
    ended, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    for task in ended:
        task.result()


def _words(done: Collected) -> str:
    counts = {"new": done.new, "reopened": done.reopened, "resolved": done.resolved, "known already": done.known}
    return f"collected {', '.join(f'{number:,} {name}' for name, number in counts.items())}"
