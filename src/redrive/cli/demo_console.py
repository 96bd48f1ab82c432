"""The demo's console: the pages and the API over the demo's own queue and letters, for as long as it runs."""

import asyncio
import os
import sys
import webbrowser
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from socket import socket
from typing import NamedTuple

from redrive.cli.demo_fates import FATES
from redrive.cli.rooms import furnish
from redrive.core.errors import ConfigError
from redrive.core.ports import Broker
from redrive.core.ports.store import Store
from redrive.door.entrance import Entrance
from redrive.door.server import listen, port_of, serving
from redrive.service import Service

HOST, PORT = "127.0.0.1", 8800


class Address(NamedTuple):
    """Where the console is, and whether that is where it usually is."""

    url: str
    is_usual: bool

    @property
    def words(self) -> str:
        """What to tell whoever started the demo."""
        taken = "" if self.is_usual else f"   (port {PORT} is taken)"
        return f"The console is open at {self.url}{taken}"


@asynccontextmanager
async def open_console(broker: Broker, store: Store) -> AsyncIterator[Address]:
    """Serve until the block ends, on the usual port or, where that is taken, on any that is free."""
    sockets, is_usual = _listen()
    # Workers on an SQLite file collect letters and carry out redrives: there is nothing else to do here.
    queues = tuple(fate.queue for fate in FATES)
    service = Service(store=store, brokers={broker.name: broker}, queues={broker.name: queues})
    entrance = Entrance(service, furnish, loopback=True)
    async with entrance.watched(), serving(entrance, sockets):
        yield Address(f"http://{HOST}:{port_of(sockets)}", is_usual)


def _listen() -> tuple[Sequence[socket], bool]:
    try:
        return listen(HOST, PORT), True
    except ConfigError:
        return listen(HOST, 0), False


async def show_in_browser(url: str) -> None:
    """Open a browser where there is a screen for one; nothing depends on it."""
    with suppress(webbrowser.Error, OSError):
        if _has_screen() and type(webbrowser.get()) is not webbrowser.GenericBrowser:  # which would take the terminal
            await asyncio.to_thread(webbrowser.open, url)


def _has_screen() -> bool:
    if sys.platform in ("darwin", "win32"):
        return "SSH_CONNECTION" not in os.environ
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
