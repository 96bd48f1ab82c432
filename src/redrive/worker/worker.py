"""A worker: one consumer at work on one subscription.

    fetch -> buffer -> lane -> handler -> outcome -> settle

Three loops beside the lanes: the feeder keeps the buffer filled, the settler carries outcomes out, the watchdog
looks for handlers over their time limit. The heartbeat is shared by all workers of a process.
"""

import asyncio
import contextlib
import contextvars
import inspect
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from redrive.core.delivery import Delivery
from redrive.core.errors import BrokerError
from redrive.core.event import (
    ConsumerPaused,
    ConsumerResumed,
    SuspectTaken,
    WorkerBeat,
    WorkerStarted,
    WorkerStopped,
)
from redrive.core.letter import Source
from redrive.core.ports import Capabilities, Subscription
from redrive.worker.account import Account, Place
from redrive.worker.breaker import Breaker
from redrive.worker.consumer import Consumer
from redrive.worker.driving import in_fresh_context
from redrive.worker.floor import Floor
from redrive.worker.lanes import Lanes
from redrive.worker.outcomes import Ended, Outcomes, Release, Surroundings
from redrive.worker.pace import Pace
from redrive.worker.payload import read_signature
from redrive.worker.runner import (
    AsyncRunner,
    BatchRunner,
    Deadline,
    Runner,
    ThreadRunner,
    call_in_thread,
)
from redrive.worker.settle import FIRST_PAUSE, LONGEST_PAUSE, MOST, Settler

WAIT = timedelta(seconds=1)  # the longest a fetch blocks, so that a stop or a pause is obeyed soon


class Post(NamedTuple):
    """Where a worker stands: who it is, and what it was given."""

    group: str
    owner: str
    source: Source
    resources: Sequence[object] = ()
    takes_suspects: bool = True
    prefetch: int = Capabilities().prefetch


class Worker:
    """Runs one consumer until it is stopped. Belongs to one event loop."""

    def __init__(
        self,
        consumer: Consumer,
        *,
        subscription: Subscription,
        post: Post,
        around: Surroundings,
        floor: Floor,
    ) -> None:
        treatment = consumer.treatment
        self.consumer = consumer
        self.subscription = subscription
        self._post = post
        self._around = around
        self._floor = floor
        self._prefetch = treatment.prefetch or post.prefetch
        self._breaker = None if treatment.breaker is None else Breaker(treatment.breaker)
        self._account = Account(Place(post.source.broker, consumer.queue, post.group, treatment.dlq), around)
        self._outcomes = Outcomes(
            consumer, source=post.source, around=around, breaker=self._breaker, opened=self._hold_back
        )
        self._settler = Settler(
            subscription,
            account=self._account,
            clock=around.clock,
            acked=self._acked,
            output_refused=self._output_refused,
            drop_refused=treatment.dlq.on_failure == "drop",
            most=max(MOST, self._prefetch),
        )
        self._threads = ThreadPoolExecutor(treatment.concurrency, thread_name_prefix=f"redrive-{consumer.queue}")
        self._lanes = Lanes(
            self._runner(),
            outcomes=self._outcomes,
            settler=self._settler,
            concurrency=treatment.concurrency,
            batch_size=consumer.batch_size,
            hungry=self._hungry,
        )
        self._pace = Pace(self._prefetch)
        self._wanted = asyncio.Event()
        self._parked = asyncio.Event()
        self._parked.set()
        self._suspects = 0
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def paused(self) -> str | None:
        """Why the consumer holds back by itself, if it does."""
        return None if self._breaker is None else self._breaker.why

    def start(self) -> None:
        """Begin to work, in tasks of the running loop."""
        self.open_for_suspects()
        self._parked.clear()
        self._tasks.append(asyncio.create_task(self._feed()))

    def open_for_suspects(self) -> None:
        """Be ready to run what is handed in, without fetching anything."""
        self._lanes.open()
        self._tasks = [asyncio.create_task(self._settler.run())]
        if self.consumer.treatment.timeout is not None:
            self._tasks.append(asyncio.create_task(self._watch(self.consumer.treatment.timeout)))
        self._emit(WorkerStarted, owner=self._post.owner)

    async def stop(self, grace: timedelta) -> None:
        """Stop fetching, let what runs end within `grace`, hand back the rest, settle everything. Idempotent."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._wanted.set()
        released = self._lanes.take_back()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace.total_seconds()):
                await self.cleared()
        released += self._lanes.in_hand()
        await self._lanes.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(grace.total_seconds(), 1.0)):
                await self._settler.idle()
                await self._release(released)
        await self._settler.close()
        for task in self._tasks:
            task.cancel()
        for result in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._emit(WorkerStopped, owner=self._post.owner, released=len(released))
        await self.subscription.aclose()

    async def cleared(self) -> None:
        """Return when the feeder is parked, nothing runs, and everything is settled."""
        self._wanted.set()
        await self._parked.wait()
        await self._lanes.quiet()
        await self._settler.idle()

    async def run_suspect(self) -> bool:
        """Take one suspect and run it with nothing else; False if there was none. The caller has the floor."""
        delivery = await self.subscription.fetch_suspect()
        if delivery is None:
            return False
        self._emit(SuspectTaken, message_id=delivery.message.id, crashes=delivery.crashes)
        self._lanes.feed([delivery])
        await self._lanes.quiet()
        await self._settler.idle()
        return True

    async def wait_for_probe(self) -> None:
        """Wait as long as an open breaker asks for; what runs next is its probe."""
        if self._breaker is not None and self._breaker.is_open:
            await self._sleep(self._breaker.probe_delay)
            self._breaker.probe()

    def in_hand(self) -> list[Delivery]:
        """Every delivery not yet settled. May be called from another thread."""
        return [*self._lanes.in_hand(), *self._settler.in_hand()]

    def lose(self, lost: Sequence[Delivery]) -> None:
        """Cancel handlers whose deliveries have passed to somebody else.

        What has ended meanwhile is passed over: it was settled before the heartbeat asked, or settling it will tell.
        """
        for delivery in self._lanes.drop({id(delivery) for delivery in lost}):
            self._account.lost(delivery.message.id)

    def suspects(self, count: int) -> None:
        """Hear at each heartbeat how many suspects wait."""
        self._suspects = count
        if not self._stopping.is_set():
            self._emit(WorkerBeat, in_flight=len(self.in_hand()), suspects=count)
        if count and self._post.takes_suspects:
            self._wanted.set()

    def faulted(self, call: str, error: Exception) -> None:
        """Hear of a broker call that failed."""
        self._account.faulted(call, error)

    @property
    def suspects_waiting(self) -> int:
        """How many suspects waited at the last heartbeat."""
        return self._suspects

    def _runner(self) -> Runner | BatchRunner:
        handler = self.consumer.handler
        batch = self.consumer.batch_size is not None
        signature = read_signature(handler, resources=self._post.resources, batch=batch)
        validation = self.consumer.treatment.validate
        if validation is not None and validation.run is not None:
            signature = signature.after(validation.run)
        function = handler if inspect.isroutine(handler) else type(handler).__call__
        is_async = inspect.iscoroutinefunction(function)
        deadline = Deadline(self._around.clock, self.consumer.treatment.timeout, wanted=signature.wants_delivery)
        if batch:

            async def call(columns: list[list[object]]) -> object:
                if is_async:
                    return await in_fresh_context(handler(*columns))
                run = partial(contextvars.copy_context().run, call_in_thread, handler, *columns)
                return await asyncio.get_running_loop().run_in_executor(self._threads, run)

            return BatchRunner(call, signature=signature, outcomes=self._outcomes, cancellable=is_async)
        if is_async:
            return AsyncRunner(
                handler, signature=signature, outcomes=self._outcomes, deadline=deadline, ended=self._settler.add
            )
        return ThreadRunner(
            handler,
            signature=signature,
            outcomes=self._outcomes,
            deadline=deadline,
            ended=self._settler.add,
            threads=self._threads,
        )

    async def _feed(self) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            try:
                await self._feed_once()
                pause = FIRST_PAUSE
            except Exception as error:  # noqa: BLE001 - whatever an adapter raises, the worker goes on
                self._account.faulted("fetch", error)
                await self._sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
        self._parked.set()

    async def _feed_once(self) -> None:
        if self._floor.taken:
            self._parked.set()
            await self._floor.wait()
            self._parked.clear()
        elif self._breaker is not None and self._breaker.is_open:
            await self._probe(self._breaker)
        elif self._suspects and self._post.takes_suspects:
            await self._run_suspects()
        else:
            want = self._pace.want(free=self._room(), started=self._lanes.started)
            missing = want - self._lanes.buffered
            if missing * 2 < want:
                self._wanted.clear()
                await self._wanted.wait()
                return
            self._lanes.feed(await self._fetch(missing))
            await asyncio.sleep(0)  # the lanes start before the next fetch is on its way

    def _room(self) -> int:
        """What can start at once: a message in each lane that rests; of batches one whole one is always in reach."""
        size = self.consumer.batch_size
        return self._lanes.free if size is None else max(self._lanes.free, 1) * size

    async def _fetch(self, limit: int) -> Sequence[Delivery]:
        deliveries = await self.subscription.fetch(limit, wait=WAIT)
        if deliveries and (self._stopping.is_set() or self._floor.taken):
            await self.subscription.release(deliveries)
            return ()
        return deliveries

    async def _run_suspects(self) -> None:
        """Drain every lane of this process, then run suspects one at a time."""
        self._parked.set()
        try:
            async with self._floor.alone():
                while not self._stopping.is_set() and await self.run_suspect():
                    if self.paused is not None:
                        return
        finally:
            self._parked.clear()
        self._suspects = 0

    async def _probe(self, breaker: Breaker) -> None:
        """Let one message through when its time has come, or a suspect if there is none."""
        await self._lanes.quiet()
        await self._settler.idle()
        await self.wait_for_probe()
        if self._stopping.is_set():
            return
        deliveries = await self._fetch(min(breaker.reach, self._prefetch))
        if deliveries:
            chosen = breaker.choose(deliveries)
            self._hand_back(delivery for delivery in deliveries if delivery is not chosen)
            self._lanes.feed([chosen])
        elif self._suspects and self._post.takes_suspects:
            await self._run_suspects()
        await self._lanes.quiet()
        await self._settler.idle()

    async def _watch(self, limit: timedelta) -> None:
        every = max(limit / 10, timedelta(milliseconds=10))
        while True:
            await asyncio.sleep(every.total_seconds())
            self._lanes.cut_overdue(limit)

    async def _sleep(self, delay: timedelta) -> None:
        """Sleep, unless the worker is asked to stop first."""
        sleeping = asyncio.ensure_future(self._around.clock.sleep(delay))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((sleeping, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            stopping.cancel()

    async def _release(self, deliveries: Sequence[Delivery]) -> None:
        if deliveries:
            with contextlib.suppress(BrokerError):  # the lease ends by itself
                await self.subscription.release(deliveries)

    def _hand_back(self, deliveries: Iterable[Delivery]) -> None:
        for delivery in deliveries:
            self._settler.add(Release(delivery))
        self._settler.kick()

    def _hungry(self) -> None:
        self._wanted.set()

    def _hold_back(self) -> None:
        """The breaker has opened: hand back what has not started."""
        held = self._lanes.take_back()
        self._hand_back(held)
        self._wanted.set()
        self._emit(ConsumerPaused, why=self.paused or "", released=len(held))

    def _acked(self) -> None:
        if self._outcomes.tell_breaker():
            self._emit(ConsumerResumed)

    def _output_refused(self, delivery: Delivery, why: str) -> Ended:
        error = BrokerError(f"the broker refused the handler's output: {why}")
        return self._outcomes.failure(delivery, error, took=0.0)

    def _emit(self, event: type, **facts: object) -> None:
        post, now = self._post, self._around.clock.now()
        self._around.sink.emit(
            event(at=now, broker=post.source.broker, queue=self.consumer.queue, group=post.group, **facts)
        )
