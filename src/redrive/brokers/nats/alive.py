"""Who is at work: each worker's last word, which the server forgets by itself."""

import json
import os
import socket
from datetime import timedelta
from typing import Final

from redrive.brokers.nats.book import Book, Write
from redrive.brokers.nats.groups import Group
from redrive.brokers.nats.heading import from_micros, to_micros
from redrive.brokers.nats.names import token
from redrive.core.ports import Alive, Clock, Options

HEARD_OF: Final = timedelta(seconds=30)
_KEPT_FOR: Final = timedelta(minutes=5)


async def beat(book: Book, group: Group, *, options: Options, clock: Clock, paused: str | None) -> None:
    """Say that a worker is at work."""
    told = {
        "name": options.owner,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "version": options.version,
        "paused": paused,
        "seen": to_micros(clock.now()),
    }
    await book.write([Write(_key(group, options.owner), json.dumps(told).encode(), kept_for=_KEPT_FOR)])


async def sign_off(book: Book, group: Group, *, options: Options) -> None:
    """Say that a worker has left."""
    await book.erase([_key(group, options.owner)])


async def heard_of(book: Book, group: Group, *, clock: Clock) -> list[Alive]:
    """The workers of a group that have spoken lately, and have not left."""
    found = []
    for row in (await book.under(f"alive.{group.wells[0].key}")).values():
        told = json.loads(row.value)
        seen_at = from_micros(told["seen"])
        if clock.now() - seen_at <= HEARD_OF:
            found.append(Alive(told["name"], told["host"], told["pid"], told["version"], seen_at, told["paused"]))
    return found


def _key(group: Group, owner: str) -> str:
    return f"alive.{group.wells[0].key}.{token(owner)}"
