"""Sizes: what nobody tells of by itself is measured from time to time, and told as events."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final, NamedTuple

from redrive.core.errors import QueueNotFound
from redrive.core.event import DlqSized, Event, LettersSized, PauseSeen, SizingFailed
from redrive.core.life import LetterState
from redrive.core.place import DeadLetterPlace, queue_of
from redrive.core.ports import Broker, Clock, EventSink, NativeDeadLetters
from redrive.core.ports.store import LetterStore

EVERY: Final = timedelta(seconds=60)
PATIENCE: Final = timedelta(seconds=30)
"""How long a store or a broker may take to tell its sizes."""

_OPEN = (LetterState.OPEN, LetterState.PARKED)


class Watched(NamedTuple):
    """A broker, and the queues of it to be measured: None for every one that has a DLQ. `dlqs` are called otherwise."""

    broker: Broker
    queues: Sequence[str] | None = None
    dlqs: Sequence[str] = ()


class Sizes:
    """Measures every minute: entries in DLQs, groups that are paused, letters in the store and the age of the oldest.

    Where it cannot, `SizingFailed` says so, and what was told last stands. What is gone is told once more, as nothing.
    """

    def __init__(self, brokers: Iterable[Watched], store: LetterStore, *, clock: Clock, sink: EventSink) -> None:
        self._brokers = list(brokers)
        self._store = store
        self._clock = clock
        self._sink = sink
        self._told: dict[str, dict[tuple[str, str, str], Event]] = {}

    async def run(self) -> None:
        """Measure now and every minute, until cancelled."""
        while True:
            await self.measure()
            await self._clock.sleep(EVERY)

    async def measure(self) -> None:
        """Measure everything once, side by side. Never raises."""
        at_brokers = (
            self._tell(f"broker:{watched.broker.name}", partial(self._at_broker, watched)) for watched in self._brokers
        )
        await asyncio.gather(self._tell("store", self._in_store), *at_brokers)

    async def _tell(self, place: str, measure: Callable[[], Awaitable[Sequence[Event]]]) -> None:
        try:
            async with asyncio.timeout(PATIENCE.total_seconds()):
                events = await measure()
        except Exception as error:  # noqa: BLE001 - whatever it is, the next minute comes
            why = f"{type(error).__name__}: {error}"
            self._sink.emit(SizingFailed(at=self._clock.now(), queue="", place=place, why=why))
            return
        found = {(type(event).__name__, event.queue, event.group): event for event in events}
        gone = [event for key, event in self._told.get(place, {}).items() if key not in found]
        for event in (*events, *map(_nothing, gone)):
            self._sink.emit(event)
        self._told[place] = found

    async def _in_store(self) -> list[Event]:
        now = self._clock.now()
        found: list[Event] = []
        for queue in (await self._store.stats(states=_OPEN)).by_queue:
            stats = await self._store.stats(queue, states=_OPEN)
            age = (now - stats.oldest_at).total_seconds() if stats.oldest_at else 0.0
            found.append(LettersSized(at=now, queue=queue, letters=stats.total, oldest=max(age, 0.0)))
        return found

    async def _at_broker(self, watched: Watched) -> list[Event]:
        broker, queues, dlqs = watched
        now, name = self._clock.now(), broker.name
        known = await broker.queues()
        pattern = broker.capabilities.dlq
        if queues is None:
            queues = sorted({queue for dlq, _ in known if (queue := queue_of(pattern, dlq)) is not None})
        places: dict[str, NativeDeadLetters] = {queue: broker.dead_letters(queue) for queue in queues}
        places |= {dlq: broker.dead_letters(dlq, place=DeadLetterPlace(name=dlq)) for dlq in dlqs}
        found: list[Event] = [
            DlqSized(at=now, queue=queue, broker=name, entries=await dlq.length()) for queue, dlq in places.items()
        ]
        for queue, group in known:
            if group and (watched.queues is None or queue in watched.queues):
                paused = await _is_paused(broker, queue, group)
                found.append(PauseSeen(at=now, queue=queue, group=group, broker=name, paused=paused))
        return found


async def _is_paused(broker: Broker, queue: str, group: str) -> bool:
    try:
        return (await broker.depth(queue, group=group)).paused is not None
    except QueueNotFound:  # it has gone meanwhile
        return False


def _nothing(event: Event) -> Event:
    """What is told of something that is not there any more."""
    match event:
        case DlqSized():
            return replace(event, entries=0)
        case LettersSized():
            return replace(event, letters=0, oldest=0.0)
        case PauseSeen():
            return replace(event, paused=False)
        case _:
            return event
