"""The DLQ of a queue in a file."""

from collections.abc import Sequence
from functools import partial

from redrive.brokers.dlq_entry import as_send_back, letter_in
from redrive.brokers.sqlite.letters import Found, find, length, page, put_letter, take_out
from redrive.brokers.sqlite.queues import send_back
from redrive.brokers.sqlite.transaction import Transaction
from redrive.brokers.sqlite.writer import Writer
from redrive.core.errors import DeadLetterError, LetterNotFound
from redrive.core.letter import DeadLetter
from redrive.core.ports import DeadEntry


class SqliteDeadLetters:
    """The `NativeDeadLetters` of the SQLite broker. Each call is one transaction."""

    def __init__(self, writer: Writer, *, name: str, queue: str, broker: str) -> None:
        self._writer = writer
        self._name = name
        self._queue = queue
        self._broker = broker

    @property
    def name(self) -> str:
        return self._name

    async def peek(self, count: int = 10, *, start: str | None = None) -> Sequence[DeadEntry]:
        found = await self._writer.read(lambda transaction: page(transaction, self._name, count, start))
        return [DeadEntry(entry.message.id, self._letter(entry)) for entry in found]

    async def length(self) -> int:
        return await self._writer.read(lambda transaction: length(transaction, self._name))

    async def redrive(self, entry_id: str) -> str:
        return await self._writer.write(partial(self._redrive, entry_id))

    async def remove(self, entry_id: str) -> None:
        await self._writer.write(partial(self._remove, entry_id))

    async def send(self, letter: DeadLetter) -> None:
        try:
            await self._writer.write(lambda transaction: put_letter(transaction, self._name, letter))
        except Exception as error:
            raise DeadLetterError(f"letter {letter.letter_id} was not written: {error}") from error

    def _redrive(self, entry_id: str, transaction: Transaction) -> str:
        entry = self._find(entry_id, transaction)
        sent = send_back(transaction, as_send_back(self._letter(entry)))
        take_out(transaction, self._name, entry.seq)
        return sent

    def _remove(self, entry_id: str, transaction: Transaction) -> None:
        take_out(transaction, self._name, self._find(entry_id, transaction).seq)

    def _find(self, entry_id: str, transaction: Transaction) -> Found:
        found = find(transaction, self._name, entry_id)
        if found is None:
            raise LetterNotFound(f"no entry {entry_id!r} in {self._name!r}")
        return found

    def _letter(self, entry: Found) -> DeadLetter:
        return letter_in(entry.message, queue=self._queue, broker=self._broker)
