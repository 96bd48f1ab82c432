"""Many documents changed as one, on a server that changes only one at a time.

Whoever writes takes a turn: the next number, by inserting the document of that number, which only one can do. What is
to be changed is written down first. A second document, the end of the turn, then makes it so; it, too, can be inserted
only once: by the one whose turn it is, or by somebody who has waited for too long and declares that nothing was
changed. Only after that the documents are touched. If a process dies on the way, whoever comes next carries out what
was made so.
"""

import asyncio
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from bson import Binary
from pymongo.errors import DuplicateKeyError

from redrive.core.errors import StoreError, StoreUnavailable
from redrive.stores.mongo.applying import apply
from redrive.stores.mongo.documents import Document
from redrive.stores.mongo.draft import Draft, decoded
from redrive.stores.mongo.shelves import DOWN, HEAD, PAGES, TURNS, UP, Shelves

SCHEMA: Final = 1
LEASE_SECONDS = 10
RENEW_SECONDS = 3
WAIT_SECONDS = 15  # longer than a process that has died keeps its turn
PAGE = 8 * 1024 * 1024  # bytes of changes in one document
INLINE = 256 * 1024  # bytes of changes that the end of a turn takes itself
_PAUSES: Final = (0.002, 0.02)
_CLOCK_SECONDS = 60


class Overtaken(Exception):
    """Somebody else has ended the turn: nothing was changed, and all has to be read again."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The right to change something, and the numbers given away so far."""

    number: int
    numbers: Mapping[str, int] = field(default_factory=dict)

    @property
    def taken(self) -> Document:
        """The document that says whose turn it is."""
        return {"_id": 2 * self.number}

    @property
    def end(self) -> Document:
        """The document that says what came of it."""
        return {"_id": 2 * self.number + 1}


class Journal:
    """The turns of a store, and what is written down before it is done."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves
        self._me = uuid4().hex
        self._clock = _ServerClock(shelves)

    async def prepare(self) -> None:
        """Begin a store, if there is none. Raises `StoreError` for one of a later version."""
        head = await self._shelves.one(HEAD, {"_id": HEAD})
        if head is None:
            await self._shelves.create_indexes()
            with suppress(DuplicateKeyError):  # others begin it too
                await self._shelves[HEAD].insert_one({"_id": HEAD, "schema": SCHEMA})
        elif head["schema"] > SCHEMA:
            raise StoreError(f"the store comes from a later version of Redrive (schema {head['schema']}, not {SCHEMA})")

    async def begin(self) -> Turn:
        """Wait for a turn; finish what the last one left undone. Raises `StoreUnavailable` if others keep it."""
        give_up_at = time.monotonic() + WAIT_SECONDS
        while (turn := await self._next()) is None:
            if time.monotonic() > give_up_at:
                raise StoreUnavailable("another process keeps the store locked")
            await asyncio.sleep(random.uniform(*_PAUSES))  # noqa: S311 - no secret
        return turn

    async def keep(self, turn: Turn) -> None:
        """Hold on to a turn for as long as this runs: it is for work that takes long."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            await self._turns.update_one(turn.taken, {"$set": {"until": await self._until()}})

    async def commit(self, turn: Turn, draft: Draft) -> None:
        """Make the changes so. Raises `Overtaken`, with nothing changed; `StoreError` for what cannot be kept."""
        raw = draft.encoded()
        inline = sum(map(len, raw)) <= INLINE
        for number, page in enumerate(() if inline else _pages(raw)):
            written = {"_id": f"{turn.number}:{number}", "turn": turn.number, "number": number, "changes": page}
            await self._shelves[PAGES].insert_one(written)
        changes = [Binary(one) for one in raw] if inline else []
        await self._end(turn, {"done": False, "changes": changes, "paged": not inline, "numbers": draft.numbers})
        if (await self._last())[0] != turn.number:  # it was ended long ago, and forgotten since; or is carried out
            raise Overtaken

    async def finish(self, turn: Turn, draft: Draft) -> None:
        """Carry out what was made so. Raises `StoreError` if the server refused a part."""
        refused = await apply(self._shelves, draft.changes, turn=turn.number)
        await self._done(turn)
        if refused:
            raise StoreError(f"MongoDB refused {len(refused)} documents: {refused[0]}")

    async def give_back(self, turn: Turn) -> None:
        """End a turn in which nothing is changed; without effect if it has ended already."""
        with suppress(Overtaken):
            await self._end(turn, {"done": True, "numbers": turn.numbers})
            await self._shelves[PAGES].delete_many({"turn": turn.number})

    async def _next(self) -> Turn | None:
        """The next turn; None if another one is not over yet."""
        last, taken, end = await self._last()
        if taken is not None and (end is None or not end["done"]):
            if taken["owner"] != self._me and taken["until"] >= await self._clock.now():
                return None
            if end is None:
                await self.give_back(Turn(last, await last_numbers(self._shelves)))
            else:
                await self._carry_out(Turn(last), end)
            return None
        turn = Turn(last + 1, {} if end is None else end["numbers"])
        try:
            await self._turns.insert_one({**turn.taken, "owner": self._me, "until": await self._until()})
        except DuplicateKeyError:
            return None
        still = (await self._last())[0] == turn.number  # if not, it was taken long ago, and forgotten since
        return turn if still else None

    async def _last(self) -> tuple[int, Document | None, Document | None]:
        """The number of the last turn, who has it, and what came of it."""
        latest = {one["_id"]: one for one in await self._shelves.many(TURNS, {}, order=[("_id", DOWN)], limit=2)}
        number = max(latest, default=0) // 2
        return number, latest.get(2 * number), latest.get(2 * number + 1)

    async def _end(self, turn: Turn, said: Document) -> None:
        try:
            await self._turns.insert_one({**turn.end, **said})
        except DuplicateKeyError:
            raise Overtaken from None

    async def _carry_out(self, turn: Turn, end: Document) -> None:
        """Carry out what another one made so."""
        raw = [*end["changes"]]
        if end["paged"]:
            pages = await self._shelves.many(PAGES, {"turn": turn.number}, order=[("number", UP)])
            raw = [one for page in pages for one in page["changes"]]
        await apply(self._shelves, decoded(raw), turn=turn.number)
        await self._done(turn)

    async def _done(self, turn: Turn) -> None:
        """All is carried out: what came before can be forgotten."""
        await self._turns.update_one(turn.end, {"$set": {"done": True, "changes": []}})
        await self._turns.delete_many({"_id": {"$lt": 2 * turn.number}})
        await self._shelves[PAGES].delete_many({"turn": {"$lte": turn.number}})

    async def _until(self) -> int:
        return await self._clock.now() + LEASE_SECONDS * 1000

    @property
    def _turns(self) -> Any:
        return self._shelves[TURNS]


async def last_numbers(shelves: Shelves) -> Mapping[str, int]:
    """The numbers given away by all whose changes are carried out."""
    done = await shelves.many(TURNS, {"done": True}, fields={"numbers": 1}, order=[("_id", DOWN)], limit=1)
    return done[0]["numbers"] if done else {}


def _pages(raw: Sequence[bytes]) -> Iterator[list[Binary]]:
    page: list[Binary] = []
    size = 0
    for one in raw:
        if page and size + len(one) > PAGE:
            yield page
            page, size = [], 0
        page.append(Binary(one))
        size += len(one)
    yield page


class _ServerClock:
    """The server's time, in milliseconds: those of the processes that share it may differ."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves
        self._ahead = 0.0
        self._asked_at: float | None = None

    async def now(self) -> int:
        if self._asked_at is None or time.monotonic() - self._asked_at > _CLOCK_SECONDS:
            answer = await self._shelves.database.command("hello")
            self._asked_at = time.monotonic()
            self._ahead = answer["localTime"].timestamp() - self._asked_at
        return int((time.monotonic() + self._ahead) * 1000)
