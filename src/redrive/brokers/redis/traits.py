"""What a server is, asked once: its version, and how large a field may be."""

import re
from typing import Any, Final, NamedTuple

from redrive.brokers.redis.wire import Wire
from redrive.core.errors import BrokerError

OLDEST: Final = (7, 0)
"""The first version that knows what our scripts ask of it."""
LARGEST_FIELD: Final = 512 * 1024 * 1024
"""What a server takes as one argument, unless it is told otherwise (`proto-max-bulk-len`)."""

_VERSION: Final = re.compile(rb"redis_version:(\d+)\.(\d+)")


class Traits(NamedTuple):
    """What a server is. The version is empty where the server does not tell."""

    version: tuple[int, ...] = ()
    largest: int = LARGEST_FIELD


async def look(wire: Wire) -> Traits:
    """Ask a server what it is. Raises `BrokerError` if it is too old for us."""
    info, config = await wire.calls([("INFO", "server"), ("CONFIG", "GET", "proto-max-bulk-len")])
    traits = Traits(_version(info), _largest(config))
    if traits.version and traits.version < OLDEST:
        raise BrokerError(f"redis: expected Redis 7.0 or later, got {_told(traits)}")
    return traits


def _version(info: Any) -> tuple[int, ...]:
    found = _VERSION.search(info) if isinstance(info, bytes) else None
    return (int(found[1]), int(found[2])) if found else ()


def _largest(config: Any) -> int:
    told = config[1] if isinstance(config, list) and len(config) > 1 else b""
    return int(told) if told.isdigit() else LARGEST_FIELD


def _told(traits: Traits) -> str:
    return ".".join(map(str, traits.version))
