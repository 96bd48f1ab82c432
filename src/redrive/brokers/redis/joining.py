"""Joining a group: the stream, the group, its lane and what is kept about the queue, made where they are missing."""

import secrets
from typing import NamedTuple

from redrive.brokers.redis.keys import QUEUES, GroupKeys
from redrive.brokers.redis.scripts import run
from redrive.brokers.redis.server import Server
from redrive.brokers.redis.wire import Wire
from redrive.core.errors import BrokerError


class Joined(NamedTuple):
    """What a queue says about itself: which life it is in, and whether its stream was begun by us."""

    incarnation: str
    created: bool


async def join(wire: Wire, keys: GroupKeys) -> Joined:
    """Join a group. The first group of a stream gets what was waiting, later ones what comes from now on.

    One step; joining again changes nothing.
    """
    return await _join(wire, keys, begin="")


async def rejoin(wire: Wire, keys: GroupKeys) -> Joined:
    """Join again after the group was lost: from the start, since nobody knows what was done."""
    return await _join(wire, keys, begin="0")


async def register(server: Server, *queues: str) -> bool:
    """Let others find these queues; return whether that was noted. A list that cannot be written loses no message."""
    try:
        async with server.wire(QUEUES) as wire:
            await wire.call("SADD", QUEUES, *queues)
    except BrokerError:
        return False
    return True


async def _join(wire: Wire, keys: GroupKeys, *, begin: str) -> Joined:
    arguments = (keys.name, secrets.token_hex(4), begin)
    incarnation, created = await run(wire, "join", (keys.queue, keys.meta, keys.lane), arguments)
    assert isinstance(incarnation, bytes)  # noqa: S101 - the script has just written it
    return Joined(incarnation.decode(), bool(created))
