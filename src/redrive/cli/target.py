"""What a command is pointed at: the broker, and a group of a queue."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from redrive.config import load_settings
from redrive.core.errors import ConfigError, QueueNotFound
from redrive.core.ports import Broker


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Target:
    """The flags that every command has."""

    broker: Annotated[
        str | None,
        Parameter(help="The broker's URL; else REDRIVE_BROKER, else redrive.toml, else sqlite:///redrive.db."),
    ] = None
    json: Annotated[bool, Parameter(help="Print JSON, one line each.")] = False

    @property
    def url(self) -> str:
        """The broker's URL, from the flag or the settings. Raises `ConfigError`."""
        return self.broker or load_settings().broker


HERE = Target()


@asynccontextmanager
async def open_broker(target: Target, *, create: bool = False) -> AsyncIterator[Broker]:
    """The broker that a command was pointed at; closed at the end. Only with `create` is an absent one made."""
    from redrive.wiring import connect, connect_existing

    broker = connect(target.url) if create else connect_existing(target.url)
    try:
        yield broker
    finally:
        await broker.aclose()


async def group_of(broker: Broker, queue: str, *, group: str | None) -> str:
    """The group asked for, or the only one there is. Raises `QueueNotFound` or, with several, `ConfigError`."""
    groups = sorted(name for found, name in await broker.queues() if found == queue and name)
    if group is not None:
        if group in groups:
            return group
        raise QueueNotFound(f"queue {queue!r} has no group {group!r}; {_there_are(groups)}")
    if len(groups) == 1:
        return groups[0]
    if not groups:
        raise QueueNotFound(f"no group consumes a queue named {queue!r}")
    raise ConfigError(f"--group: queue {queue!r} has several groups, say which: {', '.join(groups)}")


def _there_are(groups: list[str]) -> str:
    return f"there are {', '.join(groups)}" if groups else "nobody has subscribed yet"
