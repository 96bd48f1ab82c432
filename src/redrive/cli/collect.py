"""`redrive collect`: from the brokers' DLQs into the letter store, and letters on their way back."""

import asyncio
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from redrive.cli.desk import BOTH, AtBoth
from redrive.cli.output import tell
from redrive.cli.signals import until_told
from redrive.core.errors import ConfigError
from redrive.core.stored import Collected

if TYPE_CHECKING:
    from redrive.service import Service

POLL = 0.2


async def collect(
    *,
    once: Annotated[bool, Parameter(help="Until nothing is left to collect and no redrive runs; then end.")] = False,
    queue: Annotated[tuple[str, ...], Parameter(help="Only from this queue's DLQ; may be given often.")] = (),
    dlq: Annotated[tuple[str, ...], Parameter(help="Also from a DLQ of this name; may be given often.")] = (),
    keep: Annotated[bool, Parameter(help="Copy letters and leave their entries in the DLQ.")] = False,
    url: Annotated[str | None, Parameter(show=False)] = None,
    at: AtBoth = BOTH,
) -> None:
    """Collect dead letters into the store and carry out redrives, until SIGTERM or SIGINT.

    From every broker of redrive.toml, or from the one that is named. Many such processes may run at once: they share
    the work.
    """
    from redrive.config import load_settings
    from redrive.observe.logs import set_up_logs
    from redrive.service import open_service

    if url is not None:
        raise ConfigError("--url: a service collects by itself, from its own brokers; `redrive collect` needs a store")
    said = {"collect.queues": queue or None, "collect.dlqs": dlq or None, "collect.keep": keep or None}
    settings = load_settings(flags={"broker": at.broker, "store": at.store, **said})
    settings = replace(settings, service=replace(settings.service, collect=True, redrive=True))
    set_up_logs(level=settings.log_level, form=settings.log_format, color=settings.color)
    async with open_service(settings, patient=False, create=not once) as service:
        await service.store.unfinished()  # a store that cannot be used is told now, not in a log
        await until_told(_nothing_left(service) if once else asyncio.Event().wait())
    done = sum((one.collected for one in service.collectors.values()), Collected())
    tell(asdict(done), _words(done), as_json=at.json)


async def _nothing_left(service: "Service") -> None:
    while True:
        await _drained(service)
        if not await service.store.unfinished():
            await _drained(service)  # what the last redrive brought back
            return
        await asyncio.sleep(POLL)


async def _drained(service: "Service") -> None:
    await asyncio.gather(*(collector.drained() for collector in service.collectors.values()))


def _words(done: Collected) -> str:
    counts = {"new": done.new, "reopened": done.reopened, "resolved": done.resolved, "known already": done.known}
    return f"collected {', '.join(f'{number:,} {name}' for name, number in counts.items())}"
