"""A service that lives in a thread, on loopback, for as long as a test asks it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redrive.cli.rooms import furnish
from redrive.config import BrokerSettings, ServiceSettings, Settings
from redrive.door.entrance import Entrance
from redrive.door.server import listen, port_of, serving
from redrive.service import open_service


@contextmanager
def living_service(
    folder: Path, *, works: bool = False, needs_token: bool = False, rate_limit: float = 1000.0
) -> Iterator[str]:
    """The URL of a service over the files of a folder. If it `works`, it collects and carries out redrives too.

    Without `needs_token` whoever brings none is the admin `local`, also if somebody has one.
    """
    settings = Settings(
        brokers=(BrokerSettings(url=f"sqlite:///{folder}/redrive.db"),),
        store=f"sqlite:///{folder}/letters.db",
        service=ServiceSettings(collect=works, redrive=works, rate_limit=rate_limit),
    )
    begun, stop = threading.Event(), threading.Event()
    url = ""

    async def live() -> None:
        nonlocal url
        sockets = listen("127.0.0.1", 0)
        async with open_service(settings) as service:
            entrance = Entrance(service, furnish, loopback=not needs_token)
            entrance.needs_token = needs_token
            async with serving(entrance, sockets):
                url = f"http://127.0.0.1:{port_of(sockets)}"
                begun.set()
                await asyncio.to_thread(stop.wait)

    def run() -> None:
        try:
            asyncio.run(live())
        finally:
            begun.set()

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    try:
        assert url, "the service did not begin"
        yield url
    finally:
        stop.set()
        thread.join()
