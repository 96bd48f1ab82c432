"""The DLQ of a queue: a topic of letters, readable by anyone. What has left it is noted in the ledger."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import TypeVar

from redrive.brokers.dlq_entry import as_send_back, letter_in
from redrive.brokers.kafka.book import Change, Row, Rows
from redrive.brokers.kafka.finding import find
from redrive.brokers.kafka.gone import GONE, LETTER, REDRIVEN, REMOVED, begin_life, how_it_left, life_in
from redrive.brokers.kafka.office import Office
from redrive.brokers.kafka.record import Read, plain_message
from redrive.brokers.kafka.returning import send_back
from redrive.brokers.kafka.transactions import Placed
from redrive.core.errors import DeadLetterError, LetterNotFound
from redrive.core.letter import DeadLetter
from redrive.core.ports import DeadEntry

T = TypeVar("T")


class KafkaDeadLetters:
    """The `NativeDeadLetters` of the Kafka broker. An entry's id is its partition and its offset."""

    def __init__(self, office: Office, calls: Executor, *, name: str, queue: str) -> None:
        self._office = office
        self._calls = calls
        self._name = name
        self._queue = queue

    @property
    def name(self) -> str:
        return self._name

    async def peek(self, count: int = 10, *, start: str | None = None) -> Sequence[DeadEntry]:
        def look() -> Sequence[DeadEntry]:
            entries = sorted(self._entries(), key=_age)
            if start is not None:
                first = _age(self._read(start))
                entries = [read for read in entries if _age(read) >= first]
            return [DeadEntry(_entry_id(read), self._letter(read)) for read in entries[: max(count, 0)]]

        return await self._call(look)

    async def length(self) -> int:
        return await self._call(lambda: len(self._entries()))

    async def redrive(self, entry_id: str) -> str:
        def move() -> str:
            read = self._find(entry_id)
            item = as_send_back(self._letter(read))
            self._begin_life()
            (sent,) = send_back(self._office, [item], leaving={self._gone(read): REDRIVEN})
            return sent

        return await self._call(move)

    async def remove(self, entry_id: str) -> None:
        def strike() -> None:
            key = self._gone(self._find(entry_id))
            self._begin_life()
            self._office.ledger.change(lambda rows: None if key in rows else Change({key: REMOVED}))

        await self._call(strike)

    async def send(self, letter: DeadLetter) -> None:
        try:
            await self._call(lambda: self._send(letter))
        except Exception as error:
            raise DeadLetterError(f"letter {letter.letter_id} is not safe in {self._name!r}: {error}") from error

    def _send(self, letter: DeadLetter) -> None:
        self._office.topics.ensure_dlq(self._name, queue=self._queue)
        key = f"{LETTER}{self._name}:{letter.letter_id}:{letter.generation}"
        known = self._office.ledger.refresh()
        if key in known or not life_in(known, self._name):
            self._begin_life()

        def decide(rows: Rows) -> Change | None:
            if key in rows and f"{GONE}{rows[key].value.decode()}" not in rows:
                return None

            def then(placed: Sequence[Placed]) -> dict[str, Row | None]:
                return {key: Row(placed[0].id.encode())}

            record = self._office.topics.dlq.record(letter, dlq=self._name, now=self._office.clock.now())
            return Change({}, [record], then=then)

        self._office.ledger.change(decide)

    def _entries(self) -> list[Read]:
        """Everything that has not left."""
        topics = self._office.topics
        if not topics.exists(self._name):
            return []
        places = topics.places(self._name)
        life, gone = self._said()
        starts, ends = self._office.positions.starts(places), self._office.promises.ends(places)
        spans = self._office.looks.spans(life, starts, ends)
        found = [read for read in self._office.logs.read(spans) if self._gone(read) not in gone]
        self._office.looks.found(life, spans, found)
        return found

    def _find(self, entry_id: str) -> Read:
        read = self._read(entry_id)
        row = self._said()[1].get(self._gone(read))
        if row is not None:
            raise LetterNotFound(f"entry {entry_id!r} of {self._name!r} {how_it_left(row)}")
        return read

    def _read(self, entry_id: str) -> Read:
        """An entry, also one that has left. Raises `LetterNotFound`."""
        found = find(self._office, self._name, entry_id)
        if found is None:
            raise self._not_found(entry_id)
        return found

    def _said(self) -> tuple[str, Rows]:
        """Which life of the topic this is, and what the ledger says of it: of a former one, nothing."""
        rows = self._office.ledger.refresh()
        said = life_in(rows, self._name)
        life = self._office.topics.identity(self._name) if said else ""
        if life == said:
            return life, rows
        self._office.promises.forget(self._office.topics.places(self._name))
        return life, {}

    def _begin_life(self) -> None:
        begin_life(self._office.ledger, self._name, self._office.topics.identity(self._name))

    def _letter(self, read: Read) -> DeadLetter:
        entry = plain_message(read)._replace(id=_entry_id(read), headers=read.headers)
        letter = letter_in(entry, queue=self._queue, broker=self._office.name)
        return letter if letter.dlq_published_at else replace(letter, dlq_published_at=read.at)

    def _gone(self, read: Read) -> str:
        return f"{GONE}{read.id}"

    def _not_found(self, entry_id: str) -> LetterNotFound:
        return LetterNotFound(f"no entry {entry_id!r} in {self._name!r}")

    async def _call(self, call: Callable[[], T]) -> T:
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._calls, call))


def _entry_id(read: Read) -> str:
    return f"{read.partition}-{read.offset}"


def _age(read: Read) -> tuple[int, int, int]:
    return read.timestamp, read.partition, read.offset
