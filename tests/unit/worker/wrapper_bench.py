"""A wrapper with everything around it within reach."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from redrive.core.event import Event
from redrive.core.letter import DeadLetter
from redrive.core.ports import DeadLetterQueue
from redrive.core.redrive import RedriveOutcome
from redrive.testing.queues import RecordingDeadLetterQueue
from redrive.worker.outcomes import Surroundings
from redrive.worker.wrapper import DeadLetterWrapper

START = datetime(2030, 1, 1, tzinfo=UTC)


class Leaping:
    """A clock on which every sleep is over at once."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return START + timedelta(seconds=sum(self.slept))

    async def sleep(self, delay: timedelta) -> None:
        self.slept.append(delay.total_seconds())


class Sleepless(Leaping):
    """A clock on which nobody ever wakes; it tells when somebody lies down."""

    def __init__(self) -> None:
        super().__init__()
        self.asleep = threading.Event()

    async def sleep(self, _: timedelta) -> None:
        self.asleep.set()
        await asyncio.Event().wait()


class Broken:
    """A queue that cannot be reached."""

    async def send(self, letter: DeadLetter) -> None:
        raise ConnectionError(f"no route to the queue for {letter.queue}")

    async def report(self, outcome: RedriveOutcome) -> None:
        raise ConnectionError(f"no route to the queue for {outcome.queue}")

    async def aclose(self) -> None: ...


class Bench:
    """A wrapper with its queue, its clock and its events at hand."""

    def __init__(self, dlq: DeadLetterQueue | None = None, *, clock: Any = None, **options: Any) -> None:
        self.letters = RecordingDeadLetterQueue()
        self.clock = clock or Leaping()
        self.events: list[Event] = []
        around = Surroundings(self.clock, self, Random(1))
        self.wrap = DeadLetterWrapper(dlq or self.letters, around=around, **{"source": "orders", **options})

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def told(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if type(event) is kind]


async def out_of_stock(_: object) -> None:
    raise RuntimeError("no stock")


def out_of_stock_sync(_: object) -> None:
    raise RuntimeError("no stock")


def recovering(failures: int) -> Callable[[object], Coroutine[Any, Any, str]]:
    left = [RuntimeError("no stock")] * failures

    async def charge(_: object) -> str:
        if left:
            raise left.pop()
        return "charged"

    return charge
