"""The heartbeat: renews leases, says that we are alive, and hears of suspects.

It runs on an event loop of its own in a thread where the adapter allows it, so that a handler which blocks the
worker's loop keeps its lease.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol

from redrive.core.delivery import Delivery
from redrive.core.ports import Clock, Subscription

OFTEN = timedelta(seconds=2)


class Beating(Protocol):
    """What a heartbeat keeps alive: one consumer's worker."""

    @property
    def subscription(self) -> Subscription:
        """The subscription whose leases are renewed."""
        ...

    @property
    def paused(self) -> str | None:
        """Why the consumer holds back, if it does."""
        ...

    def in_hand(self) -> list[Delivery]:
        """Every delivery not yet settled; called from any thread."""
        ...

    def lose(self, lost: Sequence[Delivery]) -> None:
        """Stop working on deliveries that have passed to somebody else; called on the worker's loop."""
        ...

    def suspects(self, count: int) -> None:
        """Hear how many suspects wait; called on the worker's loop."""
        ...

    def faulted(self, call: str, error: Exception) -> None:
        """Hear of a call that failed; called on the worker's loop."""
        ...


class Heartbeat:
    """Beats for all consumers of a process, from `start` until `stop`."""

    def __init__(self, members: Sequence[Beating], *, every: timedelta, clock: Clock, in_thread: bool) -> None:
        self._members = members
        self._every = min(every, OFTEN)
        self._clock = clock
        self._in_thread = in_thread
        self._home = asyncio.get_running_loop()
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], None] = lambda: None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Beat once, then go on in the background."""
        await self._beat()
        if not self._in_thread:
            self._task = asyncio.create_task(self._forever())
            return
        started: asyncio.Future[Callable[[], None]] = self._home.create_future()
        self._thread = threading.Thread(
            target=asyncio.run, args=(self._in_own_loop(started),), name="redrive-heartbeat", daemon=True
        )
        self._thread.start()
        self._stop = await started

    async def stop(self) -> None:
        """Stop beating. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._thread is not None:
            self._stop()
            await asyncio.to_thread(self._thread.join)
        self._task = self._thread = None

    async def _in_own_loop(self, started: asyncio.Future[Callable[[], None]]) -> None:
        loop = asyncio.get_running_loop()
        beating = asyncio.create_task(self._forever())

        def stop() -> None:
            loop.call_soon_threadsafe(beating.cancel)

        self._home.call_soon_threadsafe(started.set_result, stop)
        with contextlib.suppress(asyncio.CancelledError):
            await beating

    async def _forever(self) -> None:
        while True:
            await self._clock.sleep(self._every)
            await self._beat()

    async def _beat(self) -> None:
        for member in self._members:
            try:
                deliveries = member.in_hand()
                lost = await member.subscription.extend(deliveries) if deliveries else ()
                waiting = await member.subscription.heartbeat(paused=member.paused)
            except Exception as error:  # noqa: BLE001 - whatever it is, the next beat must come
                self._tell(member.faulted, "heartbeat", error)
                continue
            if lost:
                self._tell(member.lose, lost)
            self._tell(member.suspects, waiting)

    def _tell(self, hear: Callable[..., None], *words: object) -> None:
        with contextlib.suppress(RuntimeError):  # the worker's loop has ended: nobody listens
            self._home.call_soon_threadsafe(hear, *words)
