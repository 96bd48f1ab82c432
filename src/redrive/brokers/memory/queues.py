"""Every queue in memory, and the ways by which messages get into one."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from uuid import uuid4

from redrive.brokers.memory.group import Entry, Group
from redrive.core.duration import NOW
from redrive.core.errors import QueueNotFound
from redrive.core.letter import DeadLetter
from redrive.core.message import Message, without_reserved
from redrive.core.ports import Clock
from redrive.core.redrive import SendBack
from redrive.core.wire import entry_body, to_fields

NOBODY = ""  # the group of what waits in a queue until somebody subscribes


@dataclass(slots=True)
class Queue:
    """One queue: a copy of every message for each of its groups."""

    name: str
    incarnation: str = field(default_factory=lambda: uuid4().hex)
    groups: dict[str, Group] = field(default_factory=lambda: {NOBODY: Group()})
    letters: dict[str, str] = field(default_factory=dict)  # letter_id:generation -> message id, for a DLQ

    def join(self, name: str) -> Group:
        """The group of this name. The first group gets what was waiting, later ones begin empty."""
        if name not in self.groups:
            self.groups[name] = self.groups.pop(NOBODY, Group())
        return self.groups[name]

    def group(self, name: str) -> Group:
        """The group of this name; raises `QueueNotFound`."""
        try:
            return self.groups[name]
        except KeyError:
            raise QueueNotFound(f"queue {self.name!r} has no group {name!r}") from None

    def messages(self) -> dict[str, Message]:
        """What any group still has to do, by id, oldest first."""
        entries = (entry for group in self.groups.values() for entry in group.entries.values())
        return {message.id: message for message in sorted(entry.message for entry in entries)}

    def has(self, message_id: str | None) -> bool:
        """Whether any group still has to do this message."""
        return any(message_id in group.entries for group in self.groups.values())

    def remove(self, message_id: str) -> None:
        """Take a message away from every group, whoever holds it."""
        for group in self.groups.values():
            if message_id in group.entries:
                group.remove(group.entries[message_id])


class Queues:
    """All queues of one broker. Nothing here awaits between two changes, so every move is one step."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.tokens = count(1)
        self._by_name: dict[str, Queue] = {}
        self._sent_back: dict[str, str] = {}
        self._life = uuid4().hex[:12]
        self._ids = count(1)
        self._changed = asyncio.Event()

    def __iter__(self) -> Iterator[Queue]:
        return iter(self._by_name.values())

    def open(self, name: str) -> Queue:
        """The queue of this name, made if need be."""
        if name not in self._by_name:
            self._by_name[name] = Queue(name)
        return self._by_name[name]

    def find(self, name: str) -> Queue:
        """The queue of this name; raises `QueueNotFound`."""
        try:
            return self._by_name[name]
        except KeyError:
            raise QueueNotFound(f"no queue {name!r} in memory") from None

    def new(self, message: Message, *, delay: timedelta = NOW) -> Entry:
        """A first copy of a message, to be put into its queue. Raises `TypeError` for what is not bytes."""
        now = self.clock.now()
        fresh = message._replace(
            id=f"{self._life}-{next(self._ids):010}",
            body=_exact(message.body),
            headers=tuple((name, _exact(value)) for name, value in message.headers),
            published_at=now,
            origin="",
        )
        return Entry(fresh, due_at=now + delay)

    def put(self, entry: Entry) -> str:
        """Enqueue a message for every group of its queue; return its id."""
        for group in self.open(entry.message.queue).groups.values():
            group.add(replace(entry))
        self.ring()
        return entry.message.id

    def put_letter(self, name: str, letter: DeadLetter) -> None:
        """Write a letter into a DLQ, unless it is there already."""
        fields = to_fields(letter, dlq_published_at=self.clock.now())
        entry = self.new(Message("", name, entry_body(letter), fields, letter.key))
        dlq = self.open(name)
        once = f"{letter.letter_id}:{letter.generation}"
        if not dlq.has(dlq.letters.get(once)):
            dlq.letters[once] = self.put(entry)

    def send_back(self, item: SendBack) -> str:
        """Send a letter back, once per key; return its message id, the same one when repeated.

        Only a copy that goes to one group can speak for its letter: in the queue itself every group would.
        """
        if item.once_key in self._sent_back:
            return self._sent_back[item.once_key]
        entry = self.new(Message("", item.queue, item.body, without_reserved(item.headers), item.key))
        if item.group is None:
            self.put(entry)
        else:
            if item.marked:
                entry.message = entry.message._replace(origin=item.origin)
                entry.letter_id, entry.generation = item.letter_id, item.generation
                entry.attempts_allowed = item.attempts_allowed
            self.open(item.queue).join(item.group).add(entry)
            self.ring()
        self._sent_back[item.once_key] = entry.message.id
        return entry.message.id

    def ring(self) -> None:
        """Wake everyone who waits for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self, *, until: datetime | None = None) -> None:
        """Return at the next change, or when the clock reaches `until`."""
        if until is None:
            await self._changed.wait()
            return
        alarm = asyncio.create_task(self._ring_at(until))
        try:
            await self._changed.wait()
        finally:
            alarm.cancel()

    async def _ring_at(self, at: datetime) -> None:
        await self.clock.sleep(at - self.clock.now())
        self.ring()


def _exact(value: bytes) -> bytes:
    """The bytes themselves; a copy of whatever else has bytes."""
    return value if isinstance(value, bytes) else bytes(memoryview(value))
