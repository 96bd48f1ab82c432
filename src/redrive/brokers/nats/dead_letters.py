"""The DLQ of a queue: a stream of letters, readable by anyone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from redrive.brokers.dlq_entry import as_send_back, letter_in
from redrive.brokers.nats.errors import WRONG_LAST, Refused
from redrive.brokers.nats.heading import Stored, message_of
from redrive.brokers.nats.letters import letter_for
from redrive.brokers.nats.office import Office
from redrive.brokers.nats.parts import delete_whole, whole
from redrive.brokers.nats.reading import after, get
from redrive.brokers.nats.returning import send_back
from redrive.brokers.nats.streams import Stream
from redrive.core.errors import DeadLetterError, LetterNotFound
from redrive.core.letter import DeadLetter
from redrive.core.ports import DeadEntry

_PAGE: Final = 100
_LARGEST: Final = 19  # digits of a place in a stream


class NatsDeadLetters:
    """The `NativeDeadLetters` of the NATS broker. An entry's id is its place in the stream."""

    def __init__(self, office: Office, *, name: str, queue: str) -> None:
        self._office = office
        self._name = name
        self._queue = queue

    @property
    def name(self) -> str:
        return self._name

    async def peek(self, count: int = 10, *, start: str | None = None) -> Sequence[DeadEntry]:
        stream = await self._office.streams.find(self._name)
        if stream is None or count < 1:
            return ()
        first = 1 if start is None else self._place(start)
        found: list[Stored] = []
        for subject in self._subjects(stream):
            seq = first
            while len(page := await after(self._office.link, stream, subject, seq=seq, most=min(count, _PAGE))) > 0:
                found += page
                seq = page[-1].seq + 1
                if sum(one.subject == subject or "*" in subject for one in found) >= count:
                    break
        entries = sorted(found, key=lambda one: one.seq)[:count]
        return [DeadEntry(str(one.seq), await self._letter(stream, one)) for one in entries]

    async def length(self) -> int:
        stream = await self._office.streams.find(self._name)
        if stream is None:
            return 0
        total = 0
        for subject in self._subjects(stream):
            told = await self._office.link.api(f"STREAM.INFO.{stream.name}", {"subjects_filter": subject})
            total += sum((told["state"].get("subjects") or {}).values())
        return total

    async def redrive(self, entry_id: str) -> str:
        stream, one = await self._find(entry_id)
        item = as_send_back(await self._letter(stream, one))
        (sent,) = await send_back(self._office, [item])
        if not await delete_whole(self._office.link, stream, self._name, one):
            raise self._not_found(entry_id)  # somebody else has moved it, to the same place
        return sent

    async def remove(self, entry_id: str) -> None:
        stream, one = await self._find(entry_id)
        if not await delete_whole(self._office.link, stream, self._name, one):
            raise self._not_found(entry_id)

    async def send(self, letter: DeadLetter) -> None:
        office = self._office
        try:
            stream = await office.streams.ensure_dlq(self._name, queue=self._queue)
            strict, now = office.address.terms.strict, office.clock.now()
            made = await letter_for(office.link, letter, stream=stream, dlq=self._name, strict=strict, now=now)
            await office.link.publish_one(made)
        except Refused as error:
            if error.code != WRONG_LAST:
                raise DeadLetterError(self._unsafe(letter, error)) from error
        except DeadLetterError:
            raise
        except Exception as error:
            raise DeadLetterError(self._unsafe(letter, error)) from error

    def _unsafe(self, letter: DeadLetter, error: Exception) -> str:
        return f"letter {letter.letter_id} is not safe in {self._name!r}: {error}"

    def _subjects(self, stream: Stream) -> list[str]:
        strict = f"{self._name}.*.*"
        return [self._name, strict] if stream.is_dlq else [self._name]

    async def _find(self, entry_id: str) -> tuple[Stream, Stored]:
        stream = await self._office.streams.find(self._name)
        if stream is not None and entry_id.isdecimal() and len(entry_id) < _LARGEST:
            one = await get(self._office.link, stream, int(entry_id))
            is_here = one is not None and (one.subject == self._name or one.subject.startswith(f"{self._name}."))
            if one is not None and is_here:
                return stream, one
        raise self._not_found(entry_id)

    def _place(self, entry_id: str) -> int:
        if not entry_id.isdecimal() or len(entry_id) >= _LARGEST:
            raise self._not_found(entry_id)
        return int(entry_id)

    async def _letter(self, stream: Stream, one: Stored) -> DeadLetter:
        body, heading, _ = await whole(self._office.link, stream, self._name, one.body, one.heading)
        entry = message_of(self._queue, name=str(one.seq), body=body, heading=heading, at=one.at)
        letter = letter_in(entry, queue=self._queue, broker=self._office.name)
        return letter if letter.dlq_published_at else replace(letter, dlq_published_at=one.at)

    def _not_found(self, entry_id: str) -> LetterNotFound:
        return LetterNotFound(f"no entry {entry_id!r} in {self._name!r}")
