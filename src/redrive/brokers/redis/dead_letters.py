"""The DLQ of a queue: a stream of letters, readable by anyone."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from redrive.brokers.dlq_entry import as_send_back, letter_in
from redrive.brokers.redis.entry import Fields, read_entry
from redrive.brokers.redis.joining import join
from redrive.brokers.redis.keys import QueueKeys, tag_of
from redrive.brokers.redis.letters import letter_fields
from redrive.brokers.redis.returning import SENT_KNOWN_FOR, Way, added_once, print_of, send_back, way_of
from redrive.brokers.redis.scripts import script
from redrive.brokers.redis.server import Server
from redrive.brokers.redis.settling import LETTER_KNOWN_FOR
from redrive.brokers.redis.transaction import confirm, together
from redrive.brokers.redis.wire import Wire
from redrive.core.errors import DeadLetterError, LetterNotFound
from redrive.core.letter import DeadLetter
from redrive.core.ports import DeadEntry
from redrive.core.redrive import SendBack

_ID: Final = re.compile(r"([0-9]{1,20})-([0-9]{1,20})")
_LARGEST_PART: Final = 2**64 - 1


class RedisDeadLetters:
    """The `NativeDeadLetters` of the Redis broker. Each change is one step at the server."""

    def __init__(self, server: Server, *, name: str, queue: str, broker: str) -> None:
        self._server = server
        self._name = name
        self._queue = queue
        self._broker = broker

    @property
    def name(self) -> str:
        return self._name

    async def peek(self, count: int = 10, *, start: str | None = None) -> Sequence[DeadEntry]:
        if start is not None and not is_entry_id(start):
            raise LetterNotFound(f"expected the id of an entry to start from, such as 1700000000000-0, got {start!r}")
        async with self._server.wire(self._name) as wire:
            entries = await wire.call("XRANGE", self._name, start or "-", "+", "COUNT", max(count, 0))
        return [DeadEntry(entry_id.decode(), self._letter(entry_id, fields)) for entry_id, fields in entries or ()]

    async def length(self) -> int:
        async with self._server.wire(self._name) as wire:
            return int(await wire.call("XLEN", self._name))

    async def redrive(self, entry_id: str) -> str:
        async with self._server.wire(self._name) as wire:
            item = as_send_back(await self._find(wire, entry_id))
            if self._server.address.is_cluster and tag_of(item.queue) != tag_of(self._name):
                return await self._redrive_far(wire, entry_id, item)
            sent = await self._move_back(wire, entry_id, item)
            await confirm(wire, self._server.address.durability)
        if sent is None:
            raise self._not_found(entry_id)
        return sent

    async def remove(self, entry_id: str) -> None:
        async with self._server.wire(self._name) as wire:
            await self._remove(wire, entry_id)

    async def send(self, letter: DeadLetter) -> None:
        once = QueueKeys(self._queue).once_letter(f"{letter.letter_id}:{letter.generation}")
        try:
            async with self._server.wire(self._name) as wire:
                way = Way(self._name, letter_fields(letter, largest=self._server.largest))
                await together(wire, added_once(way, once=once, life=LETTER_KNOWN_FOR))
                await confirm(wire, self._server.address.durability)
        except Exception as error:
            raise DeadLetterError(f"letter {letter.letter_id} is not safe in {self._name!r}: {error}") from error

    async def _move_back(self, wire: Wire, entry_id: str, item: SendBack) -> str | None:
        if item.group is not None:
            await join(wire, QueueKeys(item.queue).group(item.group))
        way = way_of(item, payload=self._server.address.payload, largest=self._server.largest)
        once = QueueKeys(item.queue).once_back(item.once_key)
        judge = ("EVAL", script("redrive").source, 3, way.stream, once, self._name)
        _, sent = await together(
            wire,
            [
                ("XADD", way.stream, "*", *way.fields),
                (*judge, SENT_KNOWN_FOR, way.before_id, entry_id, print_of(way.fields)),
            ],
        )
        return None if sent is None else str(sent, "ascii")

    async def _redrive_far(self, wire: Wire, entry_id: str, item: SendBack) -> str:
        """To a queue in another slot of a cluster: sent first, then removed, so that it is never nowhere.

        The once-key keeps a second call, should the first have ended in between, from sending it twice.
        """
        async with self._server.wire(item.queue) as there:
            payload, largest = self._server.address.payload, self._server.largest
            (sent,) = await send_back(there, [item], payload=payload, largest=largest)
            await confirm(there, self._server.address.durability)
        await self._remove(wire, entry_id)
        return sent

    async def _remove(self, wire: Wire, entry_id: str) -> None:
        if not is_entry_id(entry_id):
            raise self._not_found(entry_id)
        if not await wire.call("XDEL", self._name, entry_id):
            raise self._not_found(entry_id)

    async def _find(self, wire: Wire, entry_id: str) -> DeadLetter:
        found: Any = await wire.call("XRANGE", self._name, entry_id, entry_id) if is_entry_id(entry_id) else ()
        if not found:
            raise self._not_found(entry_id)
        return self._letter(*found[0])

    def _letter(self, entry_id: bytes, fields: Fields) -> DeadLetter:
        entry = read_entry(entry_id, fields, queue=self._name, payload=self._server.address.payload)
        letter = letter_in(entry, queue=self._queue, broker=self._broker)
        return letter if letter.dlq_published_at else replace(letter, dlq_published_at=entry.published_at)

    def _not_found(self, entry_id: str) -> LetterNotFound:
        return LetterNotFound(f"no entry {entry_id!r} in {self._name!r}")


def is_entry_id(text: str) -> bool:
    """Whether a stream could have an entry of this id."""
    found = _ID.fullmatch(text)
    return found is not None and max(int(found[1]), int(found[2])) <= _LARGEST_PART
