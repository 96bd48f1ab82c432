"""Publishing: entries into a stream now, or into the index of delayed messages, all or none."""

import contextlib
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from redrive.brokers.redis.address import Durability
from redrive.brokers.redis.entry import whole_millis
from redrive.brokers.redis.keys import QueueKeys
from redrive.brokers.redis.scripts import run
from redrive.brokers.redis.transaction import confirm, together
from redrive.brokers.redis.wire import Value, Wire
from redrive.core.errors import BrokerError

LATER_KNOWN_FOR: Final = 600_000
"""How long a call that published with a delay is known, in milliseconds: longer than anything sends it again."""


async def add(wire: Wire, keys: QueueKeys, entries: Sequence[list[bytes]], *, durability: Durability) -> list[str]:
    """Add entries to a stream; return their ids."""
    commands: list[tuple[Value, ...]] = [("XADD", keys.queue, "*", *fields) for fields in entries]
    existed, *ids = await together(wire, [("EXISTS", keys.queue), *commands])
    await confirm(wire, durability)
    if not existed:
        await _begin(wire, keys)
    return [entry_id.decode() for entry_id in ids]


async def add_later(
    wire: Wire, keys: QueueKeys, entries: Sequence[list[bytes]], *, delay: timedelta, durability: Durability
) -> list[str]:
    """Let entries be added when a delay is over, by whichever worker looks next; return the ids of their messages."""
    arguments: list[Value] = [whole_millis(delay), secrets.token_hex(4), LATER_KNOWN_FOR]
    series = secrets.token_hex(6)
    for place, fields in enumerate(entries):
        arguments += (f"{series}-{place}", len(fields), *fields)
    named = (keys.queue, keys.meta, keys.delayed, keys.delayed_messages, keys.once_later(series))
    ids = await run(wire, "add_later", named, arguments)
    await confirm(wire, durability)
    return [str(message_id, "ascii") for message_id in ids if isinstance(message_id, bytes)]


async def _begin(wire: Wire, keys: QueueKeys) -> None:
    """Note that a stream is ours. If that fails, it is taken for somebody else's, and never trimmed unasked."""
    with contextlib.suppress(BrokerError):
        await together(
            wire, [("HSETNX", keys.meta, "incarnation", secrets.token_hex(4)), ("HSET", keys.meta, "created", "1")]
        )
