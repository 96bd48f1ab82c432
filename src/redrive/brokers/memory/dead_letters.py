"""The DLQ of a queue in memory: an ordinary queue whose messages are letters."""

from collections.abc import Sequence
from itertools import islice

from redrive.brokers.dlq_entry import as_send_back, letter_in
from redrive.brokers.memory.queues import Queues
from redrive.core.errors import LetterNotFound, QueueNotFound
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.ports import DeadEntry


class MemoryDeadLetters:
    """The `NativeDeadLetters` of the memory broker."""

    def __init__(self, queues: Queues, *, name: str, queue: str, broker: str) -> None:
        self._queues = queues
        self._name = name
        self._queue = queue
        self._broker = broker

    @property
    def name(self) -> str:
        return self._name

    async def peek(self, count: int = 10, *, start: str | None = None) -> Sequence[DeadEntry]:
        found = (message for message in self._messages().values() if message.id >= (start or ""))
        return [DeadEntry(message.id, self._letter(message)) for message in islice(found, count)]

    async def length(self) -> int:
        return len(self._messages())

    async def redrive(self, entry_id: str) -> str:
        sent = self._queues.send_back(as_send_back(self._letter(self._find(entry_id))))
        self._queues.find(self._name).remove(entry_id)
        return sent

    async def remove(self, entry_id: str) -> None:
        self._find(entry_id)
        self._queues.find(self._name).remove(entry_id)

    async def send(self, letter: DeadLetter) -> None:
        self._queues.put_letter(self._name, letter)

    def _messages(self) -> dict[str, Message]:
        try:
            return self._queues.find(self._name).messages()
        except QueueNotFound:
            return {}

    def _find(self, entry_id: str) -> Message:
        try:
            return self._messages()[entry_id]
        except KeyError:
            raise LetterNotFound(f"no entry {entry_id!r} in {self._name!r}") from None

    def _letter(self, entry: Message) -> DeadLetter:
        return letter_in(entry, queue=self._queue, broker=self._broker)
