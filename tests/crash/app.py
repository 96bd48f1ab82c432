"""The app under test: handlers that do to themselves what their message says, and note it first."""

import asyncio
import os
import signal
import time
from dataclasses import dataclass
from typing import Any

import redrive.app
from redrive.core.delivery import Delivery
from redrive.core.message import Message
from redrive.core.outcome import GiveUp
from redrive.worker.consumer import ConsumerOptions
from tests.crash.journal import Reader, Word
from tests.crash.plan import BLOBS, ORDERS, Fate, Plan
from tests.crash.scenario import FLIPPED, GROUP, Site
from tests.crash.staged import open_broker

SITE = Site.here()
READER = Reader(SITE.folder / "journal")
PLAN = SITE.scenario
IS_FLIPPED = bool(os.environ.get(FLIPPED))


@dataclass(frozen=True)
class Order:
    """What a body of `ORDERS` must decode into."""

    id: str
    fate: str
    succeeds_at: int


Payload: Any = bytes if IS_FLIPPED else Order  # a fixed version of the app takes what the first one refused

app = redrive.app.App(open_broker(SITE), name=GROUP, version="2" if IS_FLIPPED else "1")

OPTIONS: ConsumerOptions = {
    "retry": [PLAN.retry_delay] * PLAN.retries,
    "lease": PLAN.lease,
    "concurrency": PLAN.concurrency,
    "prefetch": PLAN.prefetch,
    "crash_limit": PLAN.crash_limit,
    "breaker": None,  # it hands back without spending an attempt, and here every attempt is counted
}


@app.consumer(ORDERS, **OPTIONS)
async def order(payload: Payload, message: Message, delivery: Delivery) -> None:
    run = Run(message, delivery)
    try:
        await asyncio.sleep(run.begin())
    except asyncio.CancelledError:
        run.note(Word.CUT)
        raise
    run.end()


@app.consumer(BLOBS, **OPTIONS)
def blob(payload: bytes, message: Message, delivery: Delivery) -> None:
    run = Run(message, delivery)
    time.sleep(run.begin())
    run.end()


class Run:
    """One attempt at one message."""

    def __init__(self, message: Message, delivery: Delivery) -> None:
        plan = Plan.of(message.body)
        assert plan is not None
        assert plan.body == message.body, f"{plan.id}: the body is not what was sent"
        self._plan = plan
        self._delivery = delivery

    def begin(self) -> float:
        """Note the start; return how long the attempt takes."""
        self.note(Word.START)
        if self._plan.fate is Fate.KILLER and not IS_FLIPPED:
            os.kill(os.getpid(), signal.SIGKILL)
        return PLAN.lease * 1.25 if self._plan.fate is Fate.SLOW and not IS_FLIPPED else PLAN.pause

    def end(self) -> None:
        """Note the end, good or bad; raise if it is bad."""
        fate = Fate.OK if IS_FLIPPED else self._plan.fate
        if fate is Fate.POISON or (fate is Fate.FLAKY and self._failures() + 1 < self._plan.succeeds_at):
            self.note(Word.FAIL)
            raise RuntimeError(f"{fate} fails")
        if fate is Fate.PERMANENT:
            self.note(Word.FAIL)
            raise GiveUp("no retry can help", code="permanent")
        self.note(Word.DONE)

    def _failures(self) -> int:
        """Counted here, and not taken from the delivery: the broker's own count is under test."""
        return sum(entry.id == self._plan.id for entry in READER.of(Word.FAIL))

    def note(self, word: Word) -> None:
        """Write a line about this attempt."""
        delivery = self._delivery
        SITE.journal.note(
            word,
            id=self._plan.id,
            attempt=delivery.attempt,
            generation=delivery.generation,
            origin=delivery.message.origin_id,
        )


SITE.journal.note(Word.BORN, note=SITE.role)
