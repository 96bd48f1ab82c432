"""The database at hand: how a call reads, and how it changes many documents as one."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from pymongo import AsyncMongoClient
from pymongo.errors import AutoReconnect, ConfigurationError, InvalidURI, PyMongoError, ServerSelectionTimeoutError
from pymongo.uri_parser import parse_uri

from redrive.core.errors import ConfigError, StoreUnavailable
from redrive.core.url import mask_url
from redrive.stores.home import Errands, Lodging
from redrive.stores.mongo.address import Address
from redrive.stores.mongo.documents import Document
from redrive.stores.mongo.draft import Draft
from redrive.stores.mongo.errors import translated
from redrive.stores.mongo.journal import Journal, Overtaken, Turn
from redrive.stores.mongo.shelves import Shelves

P = ParamSpec("P")
T = TypeVar("T")

CLOSE_SECONDS = 5
_AGAIN: Final = 3
_PAUSES: Final = (0.05, 0.2, 1.0)
_SETTINGS: Final = {
    "appname": "redrive",
    "maxPoolSize": 5,
    "serverSelectionTimeoutMS": 10_000,
    "connectTimeoutMS": 10_000,
    "socketTimeoutMS": 120_000,  # a server that says nothing for so long is taken for lost
}


class MongoDatabase:
    """A store in the MongoDB at a URL; its collections are created at the first call.

    Belongs to the event loop that uses it first, until that loop is closed. Safe for many tasks and processes. Raises
    `StoreUnavailable` and `StoreError`, never what the driver raises.
    """

    def __init__(self, url: str) -> None:
        self._address = Address.of(url)
        self._shown = mask_url(url)
        self._settings = _settings_for(self._address.url, shown=self._shown)
        self._lodging = Lodging(self._open, shown=self._shown)

    async def read(self, call: Callable[Concatenate[Shelves, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that only reads. It may see a change of many documents while it is being carried out."""
        return await self._run(lambda home: home.read(lambda shelves: call(shelves, *args, **kwargs)))

    async def write(self, call: Callable[Concatenate[Draft, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that writes; one at a time, over all processes, and all of it or nothing.

        It is carried out even if the caller is cancelled meanwhile. It may be run again from its beginning.
        """
        return await self._run(lambda home: home.write(lambda draft: call(draft, *args, **kwargs)))

    async def aclose(self) -> None:
        """Finish what runs, and close. Idempotent."""
        await self._lodging.aclose()

    async def _run(self, work: Callable[["_Home"], Coroutine[Any, Any, T]]) -> T:
        with translated(self._shown):
            home = self._lodging.at_home()
            return await home.carry_out(work(home))

    def _open(self, loop: asyncio.AbstractEventLoop) -> "_Home":
        client: AsyncMongoClient[Document] = AsyncMongoClient(self._address.url, tz_aware=True, **self._settings)
        return _Home(loop, client, self._address)


class _Home(Errands):
    """A client on its event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, client: AsyncMongoClient[Document], address: Address) -> None:
        super().__init__(loop)
        self._client = client
        self._shelves = Shelves(client[address.database], address.collection)
        self._journal = Journal(self._shelves)
        self._alone = asyncio.Lock()
        self._preparing = asyncio.Lock()
        self._ready = False

    async def read(self, call: Callable[[Shelves], Awaitable[T]]) -> T:
        await self._prepare()
        return await call(self._shelves)

    async def write(self, call: Callable[[Draft], Awaitable[T]]) -> T:
        await self._prepare()
        async with self._alone:
            for _ in range(_AGAIN):
                with suppress(Overtaken):
                    return await self._in_turn(call)
        raise StoreUnavailable("others take the turn again and again before a change is made")

    async def aclose(self) -> None:
        await self.finish()
        with suppress(TimeoutError, PyMongoError):  # a server that is gone does not say goodbye
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._client.close()

    async def _in_turn(self, call: Callable[[Draft], Awaitable[T]]) -> T:
        turn = await self._journal.begin()
        keeping = self.loop.create_task(self._journal.keep(turn))
        try:
            return await self._change(call, turn)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def _change(self, call: Callable[[Draft], Awaitable[T]], turn: Turn) -> T:
        draft = Draft(self._shelves, turn.numbers)
        try:
            answer = await call(draft)
            if draft.changes:
                await self._journal.commit(turn, draft)
        except BaseException:
            with suppress(PyMongoError):
                await self._journal.give_back(turn)
            raise
        if draft.changes:
            await self._journal.finish(turn, draft)
        else:
            await self._journal.give_back(turn)
        return answer

    async def _prepare(self) -> None:
        async with self._preparing:
            if not self._ready:
                await self._begin_store()
                self._ready = True

    async def _begin_store(self) -> None:
        for pause in _PAUSES:
            try:
                return await self._journal.prepare()
            except ServerSelectionTimeoutError:
                raise
            except AutoReconnect:  # FerretDB hangs up on those who create the same collection at once
                await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - no secret
        return await self._journal.prepare()


def _settings_for(url: str, *, shown: str) -> dict[str, Any]:
    """What the URL leaves open. Raises `ConfigError` for one that the driver does not understand."""
    if not url.startswith("mongodb+srv://"):  # that one asks a name server
        try:
            parse_uri(url)
        except (InvalidURI, ConfigurationError, ValueError) as error:
            raise ConfigError(f"store: {error}, in {shown}") from None
    said = url.rpartition("?")[2].lower()
    return {name: value for name, value in _SETTINGS.items() if f"{name.lower()}=" not in said}
