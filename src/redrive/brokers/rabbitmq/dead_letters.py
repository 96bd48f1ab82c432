"""The broker's own DLQ of one queue: a plain queue, which others may read and write too.

AMQP has no look at a queue: entries are taken, and given back when the look is over. For that moment others do not see
them. What another process has in hand is not to be seen from here at all.
"""

from bisect import insort
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from aiormq.abc import DeliveredMessage

from redrive.brokers.dlq_entry import as_send_back
from redrive.brokers.rabbitmq.errors import QueueFull
from redrive.brokers.rabbitmq.hands import Hold
from redrive.brokers.rabbitmq.letters import letter_of, letter_parcel, message_of
from redrive.brokers.rabbitmq.link import behind, tag_of
from redrive.brokers.rabbitmq.names import Place
from redrive.brokers.rabbitmq.office import Office
from redrive.brokers.rabbitmq.returning import send_back
from redrive.core.errors import BrokerError, DeadLetterError, DeadLetterQueueFull, LetterNotFound
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.ports import DeadEntry


@dataclass(slots=True)
class _Found:
    """An entry: taken for a look, or in the hands of a worker of this process."""

    entry: DeadEntry
    taken: DeliveredMessage | None = None
    hold: Hold | None = None
    is_gone: bool = False

    async def acked(self, office: Office) -> None:
        self.is_gone = True
        if self.taken is not None:
            await office.link.ack([tag_of(self.taken)])
        elif self.hold is not None:
            self.hold.is_lost = True
            office.hands.let_go(self.hold)
            await office.link.ack([self.hold.tag])


class RabbitDeadLetters:
    """The `NativeDeadLetters` of the RabbitMQ broker."""

    def __init__(self, office: Office, *, name: str, queue: str) -> None:
        self._office = office
        self._name = name
        self._queue = queue

    @property
    def name(self) -> str:
        return self._name

    async def peek(self, count: int = 10, *, start: str | None = None) -> Sequence[DeadEntry]:
        """In the order of their ids: what was looked at goes back in an order that is the server's own."""
        first: list[DeadEntry] = []
        async with self._looked_at() as entries:
            async for each in entries:
                if start is None or each.entry.entry_id >= start:
                    insort(first, each.entry, key=_by_id)
                    del first[count:]
        return first

    async def length(self) -> int:
        await self._office.rest(self._name)
        ready = await self._office.link.count(self._name)
        return 0 if ready is None else ready + self._in_hand() + await self._elsewhere()

    async def redrive(self, entry_id: str) -> str:
        async with self._found(entry_id) as found:
            (message_id,) = await send_back(self._office, [as_send_back(found.entry.letter)])
            await found.acked(self._office)
        return message_id

    async def remove(self, entry_id: str) -> None:
        async with self._found(entry_id) as found:
            await found.acked(self._office)

    async def send(self, letter: DeadLetter) -> None:
        once, key = self._office.once(self._name), f"{letter.letter_id}:{letter.generation}"
        try:
            async with once.alone:
                await once.open()
                if once.has(key):
                    return
                parcel = letter_parcel(letter, dlq=self._name, now=self._office.clock.now())
                await self._office.link.publish_all([await self._office.topology.to_queue(self._name, parcel)])
                await once.remember([key])
        except QueueFull as error:
            raise DeadLetterQueueFull(f"letter {letter.letter_id} was not written: {error}") from error
        except (BrokerError, ValueError, TypeError) as error:
            raise DeadLetterError(f"letter {letter.letter_id} was not written to {self._name!r}: {error}") from error

    @asynccontextmanager
    async def _found(self, entry_id: str) -> AsyncIterator[_Found]:
        """One entry, for as long as the block lasts. Raises `LetterNotFound`."""
        async with self._looked_at() as entries:
            async for each in entries:
                if each.entry.entry_id == entry_id:
                    yield each
                    return
        raise LetterNotFound(f"no entry {entry_id!r} in {self._name!r}")

    @asynccontextmanager
    async def _looked_at(self) -> AsyncIterator[AsyncIterator[_Found]]:
        """The entries, in any order; those that were not acked go back when the block ends."""
        if await self._office.link.count(self._name) is None:
            yield self._none()
            return
        found: list[_Found] = []
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._back_in, found)
            channel = await stack.enter_async_context(self._office.link.for_a_moment())
            stack.push_async_callback(self._office.link.give_all_back, channel)

            async def entries() -> AsyncIterator[_Found]:
                alike: Counter[str] = Counter()
                for hold in list(self._office.hands.on(self._name)):
                    yield _Found(self._entry(hold.entry.message, alike), hold=hold)
                while (taken := await self._office.link.get(channel, self._name)) is not None:
                    message = message_of(taken, dlq=self._name, now=self._office.clock.now())
                    found.append(_Found(self._entry(message, alike), taken))
                    yield found[-1]

            yield entries()

    async def _back_in(self, found: Sequence[_Found]) -> None:
        """Wait until those that stay are there again, with those that nobody got to."""
        if left := sum(not each.is_gone for each in found):
            untaken = sum(behind(each.taken) for each in found[-1:] if each.taken is not None)
            await self._office.link.back_in(self._name, left + untaken)

    async def _none(self) -> AsyncIterator[_Found]:
        return
        yield

    def _entry(self, message: Message, alike: Counter[str]) -> DeadEntry:
        """An entry with an id of its own: what others have written twice is the same twice."""
        alike[message.id] += 1
        number = alike[message.id]
        entry_id = message.id if number == 1 else f"{message.id}~{number:06}"
        return DeadEntry(entry_id, letter_of(message, queue=self._queue, broker=self._office.name))

    def _in_hand(self) -> int:
        return sum(1 for _ in self._office.hands.on(self._name)) + self._office.waiting_here(self._name)

    async def _elsewhere(self) -> int:
        facts = self._office.book.of(self._name)
        if facts is None or not facts.groups:
            return 0
        return sum([await self._office.in_hand_elsewhere(Place(self._name, group)) for group in facts.groups])


def _by_id(entry: DeadEntry) -> str:
    return entry.entry_id
