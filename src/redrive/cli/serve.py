"""`redrive serve`: collector, redriver, API and console in one process."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from socket import socket
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from redrive.cli.desk import AtBoth
from redrive.cli.output import tell
from redrive.cli.signals import told_to_stop
from redrive.core.errors import ConfigError, StoreUnavailable

if TYPE_CHECKING:
    from redrive.config import Settings


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Door:
    """Where the service listens."""

    host: Annotated[str | None, Parameter(help="The address to listen on; 127.0.0.1 unless told.")] = None
    port: Annotated[int | None, Parameter(help="The port; 8800 unless told, 0 for any that is free.")] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Work:
    """What the service does beside answering."""

    queue: Annotated[tuple[str, ...], Parameter(help="Only this queue's letters; may be given often.")] = ()
    dlq: Annotated[tuple[str, ...], Parameter(help="Also from a DLQ of this name; may be given often.")] = ()
    keep: Annotated[bool, Parameter(help="Copy letters and leave their entries in the DLQ.")] = False
    no_collect: Annotated[bool, Parameter(help="Leave collecting to others.")] = False
    no_redrive: Annotated[bool, Parameter(help="Leave carrying out redrives to others.")] = False


EVERYWHERE = AtBoth()
USUAL_DOOR = Door()
ALL_WORK = Work()


def serve(*, door: Door = USUAL_DOOR, work: Work = ALL_WORK, at: AtBoth = EVERYWHERE) -> None:
    """Collect dead letters, carry out redrives, and serve the console and the API, until SIGTERM or SIGINT.

    From every broker of redrive.toml, or from the one that is named. Off loopback it needs a token: redrive tokens.
    """
    from redrive.config import load_settings
    from redrive.observe.logs import set_up_logs
    from redrive.wiring import event_loop_factory

    settings = load_settings(flags=_flags(door, work, at))
    set_up_logs(level=settings.log_level, form=settings.log_format, color=settings.color)
    with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
        runner.run(_serve(settings, as_json=at.json))


def _flags(door: Door, work: Work, at: AtBoth) -> Mapping[str, Any]:
    return {
        "broker": at.broker,
        "store": at.store,
        "service.host": door.host,
        "service.port": door.port,
        "service.collect": False if work.no_collect else None,
        "service.redrive": False if work.no_redrive else None,
        "collect.queues": work.queue or None,
        "collect.dlqs": work.dlq or None,
        "collect.keep": work.keep or None,
    }


async def _serve(settings: "Settings", *, as_json: bool) -> None:
    from redrive.door.server import is_loopback, listen

    sockets = listen(settings.service.host, settings.service.port)
    try:
        loopback = is_loopback(sockets)
        if not loopback:
            await _demand_token(settings)
        await _answer(settings, sockets, loopback=loopback, as_json=as_json)
    finally:
        for sock in sockets:
            sock.close()


async def _answer(settings: "Settings", sockets: Sequence[socket], *, loopback: bool, as_json: bool) -> None:
    from redrive.cli.rooms import furnish
    from redrive.door.entrance import Entrance
    from redrive.door.server import port_of, serving
    from redrive.service import open_service, tended
    from redrive.wiring import freeze_startup

    stop = told_to_stop()  # before anybody can know that it runs
    async with open_service(settings) as service, tended(service, settings):
        entrance = Entrance(service, furnish, loopback=loopback)
        async with entrance.watched(), serving(entrance, sockets):
            freeze_startup()
            url = _url(settings.service.host, port_of(sockets))
            said = f"redrive serves on {url}: the console there, the API's operations at {url}/docs"
            tell({"url": url}, said, as_json=as_json)
            sys.stdout.flush()
            await stop.wait()


async def _demand_token(settings: "Settings") -> None:
    """Raise `ConfigError` if nobody has a token; a store that is away is asked by each request."""
    from redrive.clock import SystemClock
    from redrive.triage.access import any_valid
    from redrive.wiring import open_store

    store = open_store(settings.store)
    try:
        if not await any_valid(store, SystemClock().now()):
            raise ConfigError(
                f"--host: {settings.service.host} can be reached from outside, and nobody has a valid token;"
                " make one with: redrive tokens issue NAME --role admin"
            )
    except StoreUnavailable:
        return
    finally:
        await store.aclose()


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
