"""The desk that a command stands at: the store it is pointed at, in the name of whoever calls it."""

import getpass
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from redrive.cli.target import Target
from redrive.clock import SystemClock
from redrive.config import check_apart, load_settings
from redrive.core.errors import ConfigError, LetterNotFound
from redrive.core.query import Query
from redrive.triage.desk import Desk

SHORT = 12  # characters of a letter's id that tables show, and that name it where no other begins with them
_FULL = 32
_LEAST = 4


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
    def store_url(self) -> str:
        """The store's URL, from the flag or the settings. Raises `ConfigError`."""
        return self.store or load_settings().store


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AtBoth(AtStore):
    """The flags of commands that need the broker too."""

    broker: Annotated[
        str | None,
        Parameter(help="The broker's URL; else REDRIVE_BROKER, else redrive.toml, else sqlite:///redrive.db."),
    ] = None

    @property
    def target(self) -> Target:
        """The broker alone. Raises `ConfigError` if it is the same file as the store."""
        url = self.broker or load_settings().broker
        check_apart(url, self.store_url)
        return Target(broker=url, json=self.json)


STORE = AtStore()
BOTH = AtBoth()


@asynccontextmanager
async def open_desk(at: AtStore, *, create: bool = False) -> AsyncIterator[Desk]:
    """A desk at the store that a command was pointed at. Only with `create` is an absent one made."""
    from redrive.wiring import open_existing_store, open_store

    clock = SystemClock()
    store = open_store(at.store_url, clock=clock) if create else open_existing_store(at.store_url, clock=clock)
    try:
        yield Desk(store, clock, whoever())
    finally:
        await store.aclose()


def whoever() -> str:
    """The name that the audit knows this person by."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"uid {os.getuid()}"


async def letter_named(desk: Desk, name: str) -> str:
    """The id of the letter whose id is, or begins with, this. Raises `LetterNotFound`, `ConfigError` for several."""
    if not _LEAST <= len(name) < _FULL:
        return name
    found: list[str] = []
    after: str | None = None
    while True:
        page = await desk.store.find(Query(text=name), limit=200, after=after)
        found += [row.letter_id for row in page.rows if row.letter_id.startswith(name)]
        after = page.after
        if name in found:
            return name
        if len(found) > 1:
            raise ConfigError(f"{name}: more than one letter begins so: {', '.join(found[:3])}; say more of its id")
        if after is None:
            break
    if not found:
        raise LetterNotFound(f"no letter {name!r} is in the store")
    return found[0]


async def letters_named(desk: Desk, names: tuple[str, ...]) -> tuple[str, ...]:
    """As `letter_named`, for several."""
    return tuple([await letter_named(desk, name) for name in names])
