"""The desk that a command stands at: the store it is pointed at, in the name of whoever calls it."""

import getpass
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from redrive.cli.target import BROKER_HELP
from redrive.clock import SystemClock
from redrive.config import BrokerSettings, Settings, load_settings
from redrive.triage.desk import Desk

SHORT = 12  # characters of a letter's id that tables show, and that name it where no other begins with them


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AtStore:
    """The flags of every command about letters."""

    store: Annotated[
        str | None,
        Parameter(help="The store's URL; else REDRIVE_STORE, else redrive.toml, else sqlite:///letters.db."),
    ] = None
    json: Annotated[bool, Parameter(help="Print JSON, one line each.")] = False

    @property
    def settings(self) -> Settings:
        """The settings with these flags. Raises `ConfigError`."""
        return load_settings(flags={"store": self.store})

    @property
    def store_url(self) -> str:
        """The store's URL, from the flag or the settings. Raises `ConfigError`."""
        return self.settings.store


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AtBoth(AtStore):
    """The flags of commands that need the broker too."""

    broker: Annotated[
        str | None,
        Parameter(help=BROKER_HELP),
    ] = None

    @property
    def settings(self) -> Settings:
        """The settings with these flags. Raises `ConfigError`, also if broker and store are one file."""
        return load_settings(flags={"broker": self.broker, "store": self.store})

    @property
    def place(self) -> BrokerSettings:
        """The broker, from the flag or the settings. Raises `ConfigError`."""
        return self.settings.broker


STORE = AtStore()
BOTH = AtBoth()


@asynccontextmanager
async def open_desk(at: AtStore, *, create: bool = False) -> AsyncIterator[Desk]:
    """A desk at the store that a command was pointed at. Only with `create` is an absent one made."""
    from redrive.wiring import cipher, open_existing_store, open_store

    clock = SystemClock()
    seals = cipher(at.settings)
    store = open_store(at.store_url, clock=clock) if create else open_existing_store(at.store_url, clock=clock)
    try:
        yield Desk(store, clock, whoever(), seals)
    finally:
        await store.aclose()


def whoever() -> str:
    """The name that the audit knows this person by."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"uid {os.getuid()}"
