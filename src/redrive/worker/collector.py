"""The collector: a worker on DLQs and outcomes queues, whose handler is the store.

It never gives up and never dead-letters: a store that is away opens the breaker at the first failure, and what was
fetched is handed back without spending an attempt. Collecting moves: the store has committed before the entry is
acked. Replicas share the work as those of any group do.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final, Self

from redrive.core.backoff import Exponential
from redrive.core.errors import BrokerError, QueueNotFound, StoreError
from redrive.core.event import CollectorLagged
from redrive.core.place import DeadLetterPlace, named, queue_of
from redrive.core.policy import RetryPolicy
from redrive.core.ports import Broker, Depth
from redrive.core.ports.store import Collected, LetterStore
from redrive.worker.breaker import BreakerRules
from redrive.worker.consumer import Consumer, Treatment
from redrive.worker.crew import Crew, Duty
from redrive.worker.intake import Feed, Intake
from redrive.worker.keeper import Keeper
from redrive.worker.outcomes import Surroundings

GROUP: Final = "redrive"
BATCH = 500
LOOK = timedelta(seconds=2)  # for queues that are new, and for the lag
_FOR_EVER = 2**31 - 1

TREATMENT = Treatment(
    retry=RetryPolicy(_FOR_EVER, backoff=Exponential(1, cap=60)),
    concurrency=2,
    prefetch=2 * BATCH,
    crash_limit=_FOR_EVER,
    dlq=DeadLetterPlace(enabled=False, off="hold"),  # a DLQ has no DLQ
    moves=True,
    breaker=BreakerRules(outcomes=1, share=0.01, messages=1, successes=1, longest_probe=timedelta(seconds=30)),
)


class Collector:
    """Collects from the queues it is told of, or from every queue of the broker that has a DLQ, now or later.

    `dlqs` names DLQs that do not follow the broker's pattern. With `keep`, letters are copied and their entries stay in
    the DLQ. Belongs to one event loop; used once.
    """

    def __init__(
        self,
        broker: Broker,
        store: LetterStore,
        *,
        around: Surroundings,
        queues: Sequence[str] | None = None,
        dlqs: Sequence[str] = (),
        keep: bool = False,
    ) -> None:
        self._broker = broker
        self._store = store
        self._around = around
        self._queues = queues
        self._dlqs = dlqs
        self._keep = keep
        self._intakes: dict[Feed, Intake] = {}
        self._crews: list[Crew] = []
        self._keepers: list[Keeper] = []
        self._looking: asyncio.Task[None] | None = None
        self._one_looks = asyncio.Lock()

    @property
    def collected(self) -> Collected:
        """What has been collected so far."""
        counts = [intake.collected for intake in self._intakes.values()]
        return Collected(
            new=sum(one.new for one in counts),
            reopened=sum(one.reopened for one in counts),
            resolved=sum(one.resolved for one in counts),
            known=sum(one.known for one in counts),
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Begin to collect. Raises `BrokerUnavailable` if the broker is away now; later it is waited for."""
        try:
            await self._look()
        except BaseException:
            await self.stop()
            raise
        self._looking = asyncio.create_task(self._look_again())

    async def stop(self) -> None:
        """End: what has begun is finished, the rest is handed back. Idempotent."""
        if self._looking is not None:
            async with self._one_looks:  # what is being taken up must not be cut in half
                self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await asyncio.gather(*(crew.stop() for crew in self._crews), *(keeper.stop() for keeper in self._keepers))

    async def drained(self) -> None:
        """Return when nothing is left to collect, but for what is held."""
        while True:
            await self._look()
            left = [_left(await self._depth(feed)) for feed in self._consumed()]
            if not any(left) and all(keeper.caught_up for keeper in self._keepers):
                return
            await self._around.clock.sleep(timedelta(milliseconds=100))

    async def _look(self) -> None:
        """Take up the feeds that are new."""
        async with self._one_looks:
            new = {
                feed: Intake(self._store, feed, around=self._around, group=GROUP)
                for feed in await self._feeds()
                if feed not in self._intakes
            }
            consumed = [feed for feed in new if self._is_consumed(feed)]
            if consumed:
                crew = self._crew({feed: new[feed] for feed in consumed})
                await crew.start()
                self._crews.append(crew)
            for feed in new.keys() - set(consumed):
                place = DeadLetterPlace(name=feed.name)
                entries = self._broker.dead_letters(feed.queue, place=place)
                keeper = Keeper(entries, new[feed], clock=self._around.clock)
                keeper.start()
                self._keepers.append(keeper)
            self._intakes.update(new)

    async def _look_again(self) -> None:
        while True:
            await self._around.clock.sleep(LOOK)
            with contextlib.suppress(BrokerError):  # the workers tell of a broker that is away
                await self._look()
                for feed in self._consumed():
                    self._tell_lag(feed, await self._depth(feed))
            with contextlib.suppress(StoreError):  # the intake waits for a store that is away
                while await self._store.tend():
                    continue

    async def _feeds(self) -> list[Feed]:
        dlq, outcomes = self._broker.capabilities.dlq, self._broker.capabilities.outcomes
        names = {name for name, _ in await self._broker.queues()}
        if self._queues is not None:
            names = {named(pattern, queue) for queue in self._queues for pattern in (dlq, outcomes)}
        found = [
            Feed(name, queue, self._broker.name, outcomes=pattern == outcomes)
            for name in sorted(names)
            for pattern in (dlq, outcomes)
            if (queue := queue_of(pattern, name)) is not None
        ]
        others = [name for name in self._dlqs if queue_of(dlq, name) is None]
        return [*found, *(Feed(name, name, self._broker.name) for name in others)]

    def _consumed(self) -> Iterable[Feed]:
        return [feed for feed in self._intakes if self._is_consumed(feed)]

    def _is_consumed(self, feed: Feed) -> bool:
        return feed.outcomes or not self._keep

    def _crew(self, intakes: Mapping[Feed, Intake]) -> Crew:
        consumers = [Consumer(feed.name, intake.messages, TREATMENT, BATCH) for feed, intake in intakes.items()]
        return Crew(self._broker, consumers, duty=Duty(group=GROUP), around=self._around)

    async def _depth(self, feed: Feed) -> Depth:
        return await self._broker.depth(feed.name, group=GROUP)

    def _tell_lag(self, feed: Feed, depth: Depth) -> None:
        now = self._around.clock.now()
        age = (now - depth.oldest_at).total_seconds() if depth.oldest_at else 0.0
        self._around.sink.emit(
            CollectorLagged(at=now, queue=feed.name, group=GROUP, waiting=_left(depth), seconds=max(age, 0.0))
        )


async def is_collected(broker: Broker, queue: str) -> bool:
    """Whether a collector is alive on the DLQ of this queue."""
    try:
        return bool(await broker.alive(broker.dead_letters(queue).name, group=GROUP))
    except QueueNotFound:
        return False


def _left(depth: Depth) -> int:
    return depth.waiting + depth.in_flight + depth.scheduled
