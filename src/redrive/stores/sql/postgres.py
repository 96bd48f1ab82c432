"""PostgreSQL: an engine on the event loop, and one writing transaction at a time over all processes.

The store's functions are the same as on SQLite, and so is what they may rely on: whoever writes has waited for all who
wrote before, and sees what they wrote. One lock, taken first and given back by the commit, sees to it; so numbers and
the audit's chain follow the order of commits, no letter is claimed twice, and no two writers wait for each other.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import Any, Concatenate, Final, ParamSpec, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import uuid4

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from redrive.core.errors import ConfigError, MissingExtra
from redrive.core.url import mask_url
from redrive.stores.home import Errands, Lodging
from redrive.stores.sql import schema
from redrive.stores.sql.bulk import COPIES
from redrive.stores.sql.errors import translated, was_undone

if find_spec("asyncpg") is None or find_spec("greenlet") is None:
    raise MissingExtra("the letter store on PostgreSQL", extra="postgres")

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

P = ParamSpec("P")
T = TypeVar("T")

CONNECTIONS = 5
CONNECT_SECONDS = 10
ANSWER_SECONDS = 120  # a server that says nothing for so long is taken for lost
LOCK_SECONDS = 10
IDLE_SECONDS = 30
CLOSE_SECONDS = 5
_CACHE: Final = "prepared_statement_cache_size"
_CACHED_STATEMENTS = 100
_PAUSES: Final = (0.02, 0.1, 0.5)

KEY: Final = 7237122551094931  # of our lock: any number will do that nobody else uses in this database

# A process that stands still while it has the lock, or is cut off, would hold up all others: the server ends its
# transaction, and those who wait do not wait for ever.
_ONE_AT_A_TIME: Final = text(
    "SELECT set_config('lock_timeout', :lock, true), set_config('idle_in_transaction_session_timeout', :idle, true),"
    " pg_advisory_xact_lock(:key)"
)


class PostgresDatabase:
    """A `Database` in a PostgreSQL that is there already; tables are created in it.

    Belongs to the event loop that uses it first, until that loop is closed.
    """

    def __init__(self, url: str) -> None:
        self._shown = mask_url(url)
        open_engine = _engine_for(url)
        self._lodging = Lodging(lambda loop: _Home(loop, open_engine()), shown=self._shown)

    async def read(self, call: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(lambda home: home.read(lambda connection: call(connection, *args, **kwargs)))

    async def write(self, call: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(lambda home: home.write(lambda connection: call(connection, *args, **kwargs)))

    async def aclose(self) -> None:
        await self._lodging.aclose()

    async def _run(self, work: Callable[["_Home"], Coroutine[Any, Any, T]]) -> T:
        with translated(self._shown):
            home = self._lodging.at_home()
            return await home.carry_out(work(home))


class _Home(Errands):
    """An engine on its event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, engine: AsyncEngine) -> None:
        super().__init__(loop)
        self._engine = engine
        # One state of the data for all statements of a call: nothing vanishes between a list and its rows.
        self._snapshots = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        self._alone = asyncio.Lock()  # who waits for the others' lock keeps a connection: one of ours does
        self._preparing = asyncio.Lock()
        self._ready = False

    async def read(self, call: Callable[[Connection], T]) -> T:
        await self._prepare()
        return await _persist(partial(_transact, self._snapshots), call, repeatable=True)

    async def write(self, call: Callable[[Connection], T]) -> T:
        await self._prepare()
        async with self._alone:
            return await self._change(call)

    async def aclose(self) -> None:
        await self.finish()
        with suppress(TimeoutError):  # a server that is gone does not say goodbye
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._engine.dispose()

    async def _prepare(self) -> None:
        async with self._preparing:
            if self._ready:
                return
            if not await _persist(partial(_transact, self._snapshots), schema.is_current, repeatable=True):
                await self._change(schema.migrate)
            self._ready = True

    async def _change(self, call: Callable[[Connection], T]) -> T:
        return await _persist(partial(_transact, self._engine, alone=True), call, repeatable=False)


async def _persist(
    transact: Callable[[Callable[[Connection], T]], Awaitable[T]], call: Callable[[Connection], T], *, repeatable: bool
) -> T:
    """Run a call again if the server undid it, or if the connection was found dead before the call could do harm."""
    for pause in _PAUSES:
        harmless = True

        def once(connection: Connection) -> T:
            nonlocal harmless
            harmless = repeatable
            return call(connection)

        try:
            return await transact(once)
        except DBAPIError as error:
            if not was_undone(error) and not (harmless and error.connection_invalidated):
                raise
        await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - no secret
    return await transact(call)


async def _transact(engine: AsyncEngine, call: Callable[[Connection], T], *, alone: bool = False) -> T:
    async with engine.begin() as connection:
        if alone:
            limits = {"lock": f"{LOCK_SECONDS}s", "idle": f"{IDLE_SECONDS}s"}
            await connection.execute(_ONE_AT_A_TIME, {"key": KEY, **limits})
        return await connection.run_sync(call)


def _engine_for(url: str) -> Callable[[], AsyncEngine]:
    """How to make an engine for a URL. What it says is read by the driver, as by PostgreSQL's own programs."""
    parts = urlsplit(url)
    _check_ports(parts.netloc, url)
    settings = parse_qsl(parts.query, keep_blank_values=True)
    cached = dict(settings).get(_CACHE, str(_CACHED_STATEMENTS))
    if not (cached.isascii() and cached.isdecimal()):
        raise ConfigError(f"store: {_CACHE}: expected a number, got {cached!r}")
    query = urlencode([(name, value) for name, value in settings if name != _CACHE])
    dsn = parts._replace(query=query).geturl()
    size = int(cached)

    async def connect() -> Any:
        timeouts = {"timeout": CONNECT_SECONDS, "command_timeout": ANSWER_SECONDS}
        return await asyncpg.connect(dsn, statement_cache_size=size, **timeouts)

    arguments = {"async_creator_fn": connect, _CACHE: size}
    if not size:  # a statement may be prepared on one connection of a pooler and named again on another
        arguments["prepared_statement_name_func"] = lambda: f"__redrive_{uuid4()}__"
    return partial(
        create_async_engine,
        "postgresql+asyncpg://",
        connect_args=arguments,
        execution_options={COPIES: size > 0},  # the driver prepares a statement with a name for each table
        isolation_level="READ COMMITTED",
        pool_size=CONNECTIONS,
        max_overflow=0,
        hide_parameters=True,  # payloads do not belong into messages
    )


def _check_ports(netloc: str, url: str) -> None:
    try:
        for place in netloc.rpartition("@")[2].split(","):  # a second server takes over where the first one fails
            urlsplit(f"//{place}").port  # noqa: B018 - read to be checked
    except ValueError as error:
        raise ConfigError(f"store: {error}, in {mask_url(url)}") from None
