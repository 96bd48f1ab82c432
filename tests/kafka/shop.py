"""An app with one consumer, and an account of everything that was sent to it."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from redrive.app import App
from redrive.core.delivery import Delivery
from redrive.core.errors import BrokerUnavailable
from redrive.core.event import Event
from redrive.core.outcome import GiveUp
from tests.crash.inspection import entries_of
from tests.unit.worker.test_telling import Heard

LOOK: Final = 0.02  # seconds
PAUSE: Final = 0.05  # seconds that a message takes
PATIENCE: Final = 180.0  # seconds for whatever waits for virtual machines
AHEAD: Final = 300  # messages sent and not done: more are sent when there are fewer
KINDS: Final = ("dies", "fails", *["is done"] * 8)
ALIVE: Final = 0.9  # of all messages: the share that is done in the end


@dataclass(frozen=True)
class Account:
    """What became of messages. `wrong` has whatever should not be, by what it is; `text` is for whoever looks on."""

    wrong: Mapping[str, list[bytes | None]]
    text: str

    def __str__(self) -> str:
        return self.text


class Shop:
    """Every tenth of its messages dies, every tenth fails once. `go` lets its handler do what it does."""

    def __init__(self, url: str, queue: str) -> None:
        self.app = App(url, name="shop")
        self.heard = Heard(self.app)
        self.go = asyncio.Event()
        self.begun = asyncio.Event()
        self.sent: set[bytes] = set()
        self.unsure: set[bytes] = set()
        self.done = Counter[bytes]()
        self.longest = 0.0  # seconds from one success to the next
        self._last = 0.0
        self._queue = queue
        self._closing = False
        self.app.consumer(queue, retry=[0, 0.1], concurrency=8, breaker=None)(self.handle)

    async def handle(self, body: bytes, delivery: Delivery) -> None:
        self.begun.set()
        await self.go.wait()
        await asyncio.sleep(PAUSE)
        if body.startswith(b"dies"):
            raise GiveUp("no retry can help", code="permanent")
        if body.startswith(b"fails") and delivery.attempt == 1:
            raise ValueError("not yet")
        self.done[body] += 1
        now = time.monotonic()
        self.longest = max(self.longest, now - (self._last or now))
        self._last = now

    async def publish(self, most: int) -> None:
        """Up to so many messages, until somebody says that it is enough."""
        for number in range(most):
            await _until(self._is_near)
            if self._closing:
                return
            body = f"{KINDS[number % len(KINDS)]} {number}".encode()
            try:
                await self.app.publish(self._queue, body)
                self.sent.add(body)
            except BrokerUnavailable:  # it may be there or not
                self.unsure.add(body)

    async def _is_near(self) -> bool:
        return self._closing or len(self.sent) * ALIVE - len(self.done) < AHEAD

    def enough(self) -> None:
        """No more are published."""
        self._closing = True

    async def until_done(self, number: int) -> None:
        """Wait until so many messages more are done than now."""
        wanted = len(self.done) + number

        async def are_done() -> bool:
            return len(self.done) >= wanted

        await _until(are_done)

    async def until_told(self, kind: type[Event]) -> None:
        """Wait until an event of this kind is told."""

        async def is_told() -> bool:
            return any(isinstance(event, kind) for event in self.heard)

        await _until(is_told)

    async def until_drained(self) -> None:
        """Wait until nothing is left of what was sent."""

        async def is_drained() -> bool:
            depth = await self.app.broker.depth(self._queue, group="shop")
            return not depth.waiting + depth.in_flight + depth.scheduled + depth.held

        await _until(is_drained)

    async def account(self) -> Account:
        """Once it is drained: every message is to be done or dead, as it deserves, and none dead twice."""
        letters = await entries_of(self.app.broker.dead_letters(self._queue))
        dead = Counter(entry.letter.payload for entry in letters)
        deserved = {body for body in self.sent if body.startswith(b"dies")}
        found: dict[str, list[bytes | None]] = {
            "lost": [*self.sent - self.done.keys() - dead.keys()],
            "never sent": [*(self.done.keys() | dead.keys()) - self.sent - self.unsure],
            "innocents": [body for body in dead if body is None or not body.startswith(b"dies")],
            "missed": [*deserved - dead.keys()],
            "dead twice": [*(dead - Counter(dead.keys())).elements()],
        }
        again = self.done.total() - len(self.done)
        return Account(
            {name: bodies for name, bodies in found.items() if bodies},
            f"{len(self.sent)} sent, {len(self.unsure)} of unknown fate, {len(dead)} dead, {again} done again,"
            f" {self.longest:.0f} s without a success",
        )


async def _until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await is_so():  # noqa: ASYNC110 - what a cluster does is no event here
            await asyncio.sleep(LOOK)
