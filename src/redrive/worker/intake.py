"""Intake: what was found in a DLQ or an outcomes queue goes into the store, whatever the store thinks of it."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import NamedTuple

from redrive.core.errors import StoreUnavailable
from redrive.core.event import LetterRefused, LettersCollected
from redrive.core.excerpt import excerpt
from redrive.core.letter import DeadLetter, changed
from redrive.core.message import Message
from redrive.core.outcome import GiveUp, RetryLater
from redrive.core.ports.store import LetterStore
from redrive.core.redrive import RedriveOutcome
from redrive.core.stored import Collected
from redrive.core.wire import load_outcome, read_letter
from redrive.worker.outcomes import Surroundings

_PLAIN = 512


class Feed(NamedTuple):
    """One place to collect from: a DLQ or an outcomes queue, and the queue that it belongs to."""

    name: str
    queue: str
    broker: str
    outcomes: bool = False


class Found(NamedTuple):
    """One entry of a feed, read."""

    entry_id: str
    what: DeadLetter | RedriveOutcome


Taken = RetryLater | GiveUp | None
"""None: it is in the store. RetryLater: not yet. GiveUp: it must stay where it is, a stub in the store points there."""


class Intake:
    """Takes one feed in. `collected` counts what the store did with it.

    A store that is away is asked again later, for everything. One that refuses a letter gets the batch in halves until
    the letter stands alone, then a stub of it: no payload, its hash, and a pointer to the entry, which is held.
    """

    def __init__(self, store: LetterStore, feed: Feed, *, around: Surroundings, group: str) -> None:
        self._store = store
        self._feed = feed
        self._around = around
        self._group = group
        self.collected = Collected()

    async def messages(self, messages: list[Message]) -> list[Taken]:
        """The handler of a batch consumer: one answer per message."""
        answers: dict[int, Taken] = {}
        found: dict[int, Found] = {}
        for place, message in enumerate(messages):
            try:
                found[place] = self._read(message)
            except ValueError as error:
                answers[place] = GiveUp(f"not an outcome: {error}")
        taken = await self.take([*found.values()]) if found else ()
        answers |= dict(zip(found, taken, strict=True))
        return [answers[place] for place in range(len(messages))]

    async def take(self, found: Sequence[Found]) -> list[Taken]:
        """Put what was found into the store: all of it in one transaction if it can be, else in ever smaller ones."""
        letters = [one.what for one in found if isinstance(one.what, DeadLetter)]
        outcomes = [one.what for one in found if isinstance(one.what, RedriveOutcome)]
        try:
            self._note(await self._store.collect(letters, outcomes))
        except StoreUnavailable as error:
            return [_later(error) for _ in found]
        except Exception as error:  # noqa: BLE001 - no letter may stop the others, whatever it does to the store
            if len(found) == 1:
                return [await self._stub(found[0], error)]
            middle = len(found) // 2
            return [*await self.take(found[:middle]), *await self.take(found[middle:])]
        return [None] * len(found)

    def found(self, letter: DeadLetter, entry_id: str) -> Found:
        """A letter as it is collected: with the time, its entry, and the broker's name as it is known here.

        A worker has a name of its own for its broker; letters are sent back by the name that collectors have for it.
        """
        now, broker = self._around.clock.now(), self._feed.broker
        return Found(entry_id, changed(letter, collected_at=now, broker=broker, dlq_entry_id=entry_id))

    def _read(self, message: Message) -> Found:
        if self._feed.outcomes:
            return Found(message.id, load_outcome(message.body))
        letter = read_letter(
            message.body,
            message.headers,
            queue=self._feed.queue,
            entry_id=message.id,
            now=message.published_at or self._around.clock.now(),
            broker=self._feed.broker,
            key=message.key,
        )
        return self.found(letter, message.id)

    async def _stub(self, found: Found, refused: Exception) -> Taken:
        why = f"the store refused it: {type(refused).__name__}: {refused}"
        if not isinstance(found.what, DeadLetter):
            return GiveUp(why)
        try:
            self._note(await self._store.collect([stub_of(found.what, self._feed, found.entry_id, why)]))
        except StoreUnavailable as error:
            return _later(error)
        except Exception as error:  # noqa: BLE001 - it stays in the DLQ, and is tried again
            self._tell(found, f"{why}; and its stub: {error}", refused)
            return RetryLater(why=why)
        self._tell(found, why, refused)
        return GiveUp(why)

    def _tell(self, found: Found, why: str, refused: Exception) -> None:
        letter = found.what if isinstance(found.what, DeadLetter) else None
        event = LetterRefused(
            at=self._around.clock.now(),
            broker=self._feed.broker,
            queue=self._feed.name,
            group=self._group,
            message_id=found.entry_id,
            payload_sha256="" if letter is None else letter.payload_sha256,
            why=why,
            failure_reason=type(refused).__name__,
            letter=letter,
        )
        self._around.sink.emit(event)

    def _note(self, more: Collected) -> None:
        self.collected += more
        event = LettersCollected(
            at=self._around.clock.now(),
            broker=self._feed.broker,
            queue=self._feed.queue,
            group=self._group,
            **asdict(more),
        )
        self._around.sink.emit(event)


def stub_of(letter: DeadLetter, feed: Feed, entry_id: str, why: str) -> DeadLetter:
    """What stands for a letter that the store refuses: who it is, its hash, and where it is kept."""
    return DeadLetter(
        letter_id=_plain(letter.letter_id),
        generation=letter.generation,
        broker=_plain(letter.broker),
        queue=_plain(letter.queue),
        group=_plain(letter.group),
        payload=None,
        payload_sha256=_plain(letter.payload_sha256),
        reason=letter.reason,
        error_type=_plain(letter.error_type),
        fingerprint=_plain(letter.fingerprint),
        retry_count=letter.retry_count,
        failed_at=letter.failed_at,
        collected_at=letter.collected_at,
        context={"stub": {"kept_in": feed.name, "entry_id": entry_id, "why": _plain(why)}},
        dlq_entry_id=_plain(entry_id),
    )


def _plain(text: str) -> str:
    """Text that any store can keep, also in an index."""
    return excerpt(text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00"), limit=_PLAIN)


def _later(error: StoreUnavailable) -> RetryLater:
    """Asked again when the store is back; the cause tells the breaker that this is an outage."""
    later = RetryLater(why=f"the store is away: {error}")
    later.__cause__ = error
    return later
