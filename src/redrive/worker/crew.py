"""The crew: all workers of one process, with one heartbeat and one floor between them."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import uuid4

from redrive.core.errors import BrokerUnavailable, ConfigError
from redrive.core.letter import Source
from redrive.core.ports import Broker, Obituary, Options
from redrive.worker.consumer import Consumer
from redrive.worker.floor import Floor
from redrive.worker.heartbeat import Heartbeat
from redrive.worker.outcomes import Surroundings
from redrive.worker.settle import FIRST_PAUSE, LONGEST_PAUSE
from redrive.worker.worker import Post, Worker

GRACE = timedelta(seconds=25)


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """What a crew is for: whose messages, and under which name.

    `takes_suspects` is False under a supervisor, which has a child of its own for them. `obituary` tells such a child
    how the one before it died.
    """

    group: str
    version: str = ""
    takes_suspects: bool = True
    obituary: Obituary | None = None
    grace: timedelta = GRACE
    owner: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}")


class Crew:
    """Starts and stops the workers of an app. Belongs to one event loop; used once."""

    def __init__(
        self,
        broker: Broker,
        consumers: Sequence[Consumer],
        *,
        duty: Duty,
        around: Surroundings,
        resources: Sequence[object] = (),
    ) -> None:
        self._broker = broker
        self._consumers = consumers
        self._duty = duty
        self._around = around
        self._resources = resources
        self._floor = Floor()
        self._heartbeat: Heartbeat | None = None
        self.workers: list[Worker] = []

    @property
    def owner(self) -> str:
        """The name under which this process holds deliveries."""
        return self._duty.owner

    @property
    def grace(self) -> timedelta:
        """How long it may take to drain."""
        return self._duty.grace

    @property
    def suspects_waiting(self) -> int:
        """How many suspects waited at the last heartbeat, over all queues."""
        return sum(worker.suspects_waiting for worker in self.workers)

    async def start(self) -> None:
        """Subscribe every consumer and begin to work. Raises `ConfigError` with every mistake at once."""
        if not self._consumers:
            raise ConfigError("app: expected at least one consumer, got none")
        await self._subscribe()
        for worker in self.workers:
            worker.start()
        await self._beat()

    async def stop(self) -> None:
        """Drain within the grace period, hand back the rest, sign off. Idempotent."""
        await asyncio.gather(*(worker.stop(self._duty.grace) for worker in self.workers))
        if self._heartbeat is not None:
            await self._heartbeat.stop()

    async def open_for_suspects(self) -> None:
        """Subscribe without fetching, for a process of the suspects' own."""
        await self._subscribe()
        for worker in self.workers:
            worker.open_for_suspects()
        await self._beat()

    async def run_suspects(self, stop: asyncio.Event) -> None:
        """Run suspects alone, one at a time over all queues, until none is left or `stop` is set.

        A broker that is away is waited for: the end of this process would be one more crash of what it was given last.
        """
        pause = FIRST_PAUSE
        while not stop.is_set():
            try:
                if not await self._run_some(stop):
                    return
                pause = FIRST_PAUSE
            except BrokerUnavailable as error:
                self.workers[0].faulted("fetch_suspect", error)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause.total_seconds()):
                        await stop.wait()
                pause = min(pause * 2, LONGEST_PAUSE)

    async def _run_some(self, stop: asyncio.Event) -> bool:
        """Run one suspect of each queue; False if none is left."""
        ran = []
        for worker in self.workers:
            await worker.wait_for_probe()
            ran.append(not stop.is_set() and await worker.run_suspect())
        return any(ran) or any([await worker.subscription.heartbeat() for worker in self.workers])

    async def _subscribe(self) -> None:
        mistakes: list[str] = []
        for consumer in self._consumers:
            try:
                self.workers.append(await self._worker(consumer))
            except ConfigError as error:
                mistakes.extend(f"{consumer.queue}: {mistake}" for mistake in error.mistakes)
        if mistakes:
            raise ConfigError(mistakes)
        self._floor.members = self.workers

    async def _worker(self, consumer: Consumer) -> Worker:
        duty, treatment = self._duty, consumer.treatment
        if treatment.trim is not None and not self._broker.capabilities.keeps_acked:
            raise ConfigError(f"trim: {self._broker.name} keeps nothing that was acked; leave this option out")
        subscription = await self._broker.subscribe(
            consumer.queue,
            group=duty.group,
            options=Options(
                owner=duty.owner,
                lease=treatment.lease,
                dlq=treatment.dlq,
                version=duty.version,
                obituary=duty.obituary,
                trim=treatment.trim,
                moves=treatment.moves,
                output=treatment.output,
            ),
        )
        source = Source(
            broker=self._broker.name,
            incarnation=subscription.incarnation,
            handler=consumer.name,
            app_version=duty.version,
            node=socket.gethostname(),
            pid=os.getpid(),
            kind=treatment.kind,
        )
        post = Post(
            duty.group, duty.owner, source, self._resources, duty.takes_suspects, self._broker.capabilities.prefetch
        )
        try:
            return Worker(consumer, subscription=subscription, post=post, around=self._around, floor=self._floor)
        except ConfigError:
            await subscription.aclose()
            raise

    async def _beat(self) -> None:
        every = min(consumer.treatment.lease for consumer in self._consumers) / 3
        self._heartbeat = Heartbeat(
            self.workers,
            every=every,
            clock=self._around.clock,
            in_thread=self._broker.capabilities.thread_heartbeat,
        )
        await self._heartbeat.start()
