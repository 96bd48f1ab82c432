"""What a command is pointed at: the broker, and a group of a queue."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Protocol

from cyclopts import Parameter

from redrive.config import BrokerSettings, load_settings
from redrive.core.errors import ConfigError
from redrive.core.ports import Broker
from redrive.triage import queues

BROKER_HELP = "The broker's URL, or its name in redrive.toml; else REDRIVE_BROKER, else sqlite:///redrive.db."


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Target:
    """The flags that every command has."""

    broker: Annotated[
        str | None,
        Parameter(help=BROKER_HELP),
    ] = None
    json: Annotated[bool, Parameter(help="Print JSON, one line each.")] = False

    @property
    def place(self) -> BrokerSettings:
        """The broker, from the flag or the settings. Raises `ConfigError`."""
        return load_settings(flags={"broker": self.broker}).broker


HERE = Target()


class Pointed(Protocol):
    """Whatever says which broker is meant."""

    @property
    def place(self) -> BrokerSettings:
        """The broker."""
        ...


@asynccontextmanager
async def open_broker(target: Pointed, *, create: bool = False) -> AsyncIterator[Broker]:
    """The broker that a command was pointed at; closed at the end. Only with `create` is an absent one made."""
    from redrive.wiring import connect, connect_existing

    place = target.place
    broker = connect(place.url, name=place.name) if create else connect_existing(place)
    try:
        yield broker
    finally:
        await broker.aclose()


async def group_of(broker: Broker, queue: str, *, group: str | None) -> str:
    """The group asked for, or the only one there is. Raises `QueueNotFound` or, with several, `ConfigError`."""
    try:
        return await queues.group_of(broker, queue, group=group)
    except ConfigError as error:
        raise ConfigError(f"--{error}") from error
