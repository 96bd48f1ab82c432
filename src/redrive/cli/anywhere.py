"""Where a command about letters is answered: at a store that it opens itself, or at a service."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from cyclopts import Parameter

from redrive.cli.clerk import Clerk, Letters, Queues
from redrive.cli.desk import AtBoth, AtStore, open_desk
from redrive.cli.target import BROKER_HELP, Target, open_broker
from redrive.config import load_settings, load_token
from redrive.core.errors import ConfigError, LetterNotFound
from redrive.core.query import Query
from redrive.core.stored import Page

Row = TypeVar("Row")

PAGE = 200
_FULL = 32  # characters of a letter's id
_LEAST = 4


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ToService:
    """The flags that point to a service. There is none for the token itself: everybody can read a command line."""

    url: Annotated[
        str | None,
        Parameter(help="A service to ask instead, such as http://127.0.0.1:8800; else REDRIVE_URL, else redrive.toml."),
    ] = None
    token_file: Annotated[Path | None, Parameter(help="A file that holds the token for it; else REDRIVE_TOKEN.")] = None

    def service(self, *here: str | None) -> str | None:
        """The service's URL, if a service is meant; `here` are the flags that say otherwise. Raises `ConfigError`."""
        if not any(here):
            return load_settings(flags={"url": self.url}).url
        if self.url:
            raise ConfigError("--url: a service has a store and brokers of its own: leave out --store and --broker")
        return None

    @property
    def token(self) -> str | None:
        """The token's secret, if there is one. Raises `ConfigError`."""
        return load_token(self.token_file)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Anywhere(ToService, AtStore):
    """The flags of every command about letters."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AnywhereBoth(ToService, AtBoth):
    """The flags of commands that send letters back: at a store they need the broker too."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AnyBroker(ToService, Target):
    """The flags of commands about queues. With a service, a broker is one of its own, by name."""

    broker: Annotated[
        str | None, Parameter(help=f"{BROKER_HELP} With --url the name of one of the service's, if it has several.")
    ] = None


STORE = Anywhere()
BOTH = AnywhereBoth()
BROKER = AnyBroker()


@asynccontextmanager
async def open_clerk(at: Anywhere | AnywhereBoth, *, create: bool = False) -> AsyncIterator[Clerk]:
    """Who answers a command, wherever it was pointed at. Only with `create` is an absent store made."""
    broker = at.broker if isinstance(at, AnywhereBoth) else None
    if url := at.service(at.store, broker):
        from redrive.cli.at_service import clerk_at

        yield clerk_at(url, token=at.token)
        return
    from redrive.cli import at_store

    async with AsyncExitStack() as stack:
        desk = await stack.enter_async_context(open_desk(at, create=create))
        sender = await stack.enter_async_context(open_broker(at)) if isinstance(at, AnywhereBoth) else None
        yield at_store.clerk_at(desk, sender)


@asynccontextmanager
async def open_queues(target: AnyBroker) -> AsyncIterator[Queues]:
    """Who answers a command about queues."""
    if url := target.service(target.broker if target.broker and "://" in target.broker else None):
        from redrive.cli.at_service.client import Client
        from redrive.cli.at_service.queues import QueuesThere

        yield QueuesThere(Client(url, token=target.token), broker=target.broker)
        return
    from redrive.cli.at_store.queues import QueuesHere

    async with open_broker(target) as broker:
        yield QueuesHere(broker)


async def rows_of(
    look: Callable[[int, str | None], Awaitable[Page[Row]]], *, count: int, after: str | None
) -> Page[Row]:
    """So many rows, over pages that may be short: a store looks for a bounded time only. Raises `ConfigError`."""
    if count < 1:
        raise ConfigError(f"--count: expected at least 1, got {count}")
    rows: list[Row] = []
    while True:
        page = await look(min(count - len(rows), PAGE), after)
        rows += page.rows
        after = page.after
        if after is None or len(rows) >= count:
            return Page(rows, after)


async def letter_named(letters: Letters, name: str) -> str:
    """The id of the letter whose id is, or begins with, this. Raises `LetterNotFound`, `ConfigError` for several."""
    if not _LEAST <= len(name) < _FULL:
        return name
    found: list[str] = []
    after: str | None = None
    while True:
        page = await letters.find(Query(text=name), limit=PAGE, after=after)
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


async def letters_named(letters: Letters, names: tuple[str, ...]) -> tuple[str, ...]:
    """As `letter_named`, for several."""
    return tuple([await letter_named(letters, name) for name in names])
