"""The collector: a worker on DLQs and outcomes queues, whose handler is the store.

It never gives up and never dead-letters: a store that is away opens the breaker at the first failure, and what was
fetched is handed back without spending an attempt. Collecting moves: the store has committed before the entry is
acked. Replicas share the work as those of any group do.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final, Self

from redrive.core.backoff import Exponential
from redrive.core.duration import NOW
from redrive.core.errors import BrokerError, BrokerUnavailable, QueueNotFound, RedriveError, StoreError
from redrive.core.event import BrokerFaulted, CollectorLagged
from redrive.core.place import COLLECTORS, DeadLetterPlace, named, queue_of
from redrive.core.policy import RetryPolicy
from redrive.core.ports import Broker, Depth
from redrive.core.ports.store import LetterStore
from redrive.core.stored import Collected
from redrive.worker.breaker import BreakerRules
from redrive.worker.consumer import Consumer, Treatment
from redrive.worker.crew import Crew, Duty
from redrive.worker.intake import Feed, Intake
from redrive.worker.keeper import Keeper
from redrive.worker.outcomes import Surroundings

GROUP: Final = COLLECTORS
BATCH = 500
LOOK = timedelta(seconds=2)  # for queues that are new, and for the lag
TENDING = 10  # steps of the store's work that can wait, before it looks again
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

    `dlqs` names further DLQs, whatever they are called, with the queue of letters that do not say it themselves. With
    `keep`, letters are copied and their entries stay in the DLQ. Belongs to one event loop; used once.
    """

    def __init__(
        self,
        broker: Broker,
        store: LetterStore,
        *,
        around: Surroundings,
        queues: Sequence[str] | None = None,
        dlqs: Sequence[str] | Mapping[str, str | None] = (),
        keep: bool = False,
    ) -> None:
        self._broker = broker
        self._store = store
        self._around = around
        self._queues = queues
        self._dlqs = dlqs if isinstance(dlqs, Mapping) else dict.fromkeys(dlqs)
        self._keep = keep
        self._intakes: dict[Feed, Intake] = {}
        self._crews: list[Crew] = []
        self._keepers: list[Keeper] = []
        self._looking: asyncio.Task[None] | None = None
        self._one_looks = asyncio.Lock()
        self.trouble: str | None = None
        """Why it could not look for something to collect the last time it tried, if it could not."""

    @property
    def collected(self) -> Collected:
        """What has been collected so far."""
        return sum((intake.collected for intake in self._intakes.values()), Collected())

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, *, patient: bool = False) -> None:
        """Begin to collect. A broker that goes away later is waited for; one that is away now too, if `patient`.

        Raises `BrokerUnavailable` otherwise.
        """
        if not patient:
            try:
                await self._look()
            except BaseException:
                await self.stop()
                raise
        self._looking = asyncio.create_task(self._look_again(NOW if patient else LOOK))

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
            for feed, intake in new.items():
                if not self._is_consumed(feed):
                    self._keep_reading(feed, intake)
            if consumed := {feed: intake for feed, intake in new.items() if self._is_consumed(feed)}:
                await self._consume(consumed)

    def _keep_reading(self, feed: Feed, intake: Intake) -> None:
        entries = self._broker.dead_letters(feed.queue, place=DeadLetterPlace(name=feed.name))
        keeper = Keeper(entries, intake, clock=self._around.clock, tell=self._tell_trouble)
        keeper.start()
        self._keepers.append(keeper)
        self._intakes[feed] = intake

    async def _consume(self, intakes: Mapping[Feed, Intake]) -> None:
        """Together if all can begin; else each by itself, so that one that cannot does not keep the others."""
        try:
            crew = await self._started(intakes)
        except BrokerUnavailable:
            raise
        except RedriveError as error:
            if len(intakes) == 1:
                raise BrokerError(f"{next(iter(intakes)).name}: {error}") from error
            troubles = []
            for feed, intake in intakes.items():
                try:
                    await self._consume({feed: intake})
                except BrokerError as trouble:
                    troubles.append(trouble)
            if troubles:
                raise troubles[0] from error
            return
        self._crews.append(crew)
        self._intakes.update(intakes)

    async def _look_again(self, pause: timedelta) -> None:
        while True:
            await self._around.clock.sleep(pause)
            pause, trouble = LOOK, None
            try:
                await self._look()
                for feed in self._consumed():
                    self._tell_lag(feed, await self._depth(feed))
            except Exception as error:  # noqa: BLE001 - told, and tried again
                trouble = error
            try:
                if await self._tend():
                    pause = NOW
            except StoreError:  # the intake waits for a store that is away
                pass
            except Exception as error:  # noqa: BLE001 - told, and tried again
                trouble = trouble or error
            if trouble is None:
                self.trouble = None
            else:
                self._tell_trouble(trouble)

    async def _tend(self) -> bool:
        """Some of the store's work that can wait; True if there is more of it, which comes after the next look."""
        for _ in range(TENDING):
            if not await self._store.tend():
                return False
        return True

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
        usual = [feed for feed in found if not self._dlqs.get(feed.name)]
        return [*dict.fromkeys((*usual, *self._named()))]

    def _named(self) -> Iterator[Feed]:
        """What belongs to the DLQs that it was told of by name."""
        for name, queue in self._dlqs.items():
            usual = queue_of(self._broker.capabilities.dlq, name)
            yield Feed(name, queue or usual or name, self._broker.name)
            if queue:
                yield Feed(named(self._broker.capabilities.outcomes, queue), queue, self._broker.name, outcomes=True)

    def _consumed(self) -> Iterable[Feed]:
        return [feed for feed in self._intakes if self._is_consumed(feed)]

    def _is_consumed(self, feed: Feed) -> bool:
        return feed.outcomes or not self._keep

    async def _started(self, intakes: Mapping[Feed, Intake]) -> Crew:
        """A crew at work on these. Of one that cannot begin on all of them, nobody stays."""
        consumers = [Consumer(feed.name, intake.messages, TREATMENT, BATCH) for feed, intake in intakes.items()]
        crew = Crew(self._broker, consumers, duty=Duty(group=GROUP), around=self._around)
        try:
            await crew.start()
        except BaseException:
            with contextlib.suppress(BrokerError):
                await crew.stop()
            raise
        return crew

    async def _depth(self, feed: Feed) -> Depth:
        return await self._broker.depth(feed.name, group=GROUP)

    def _tell_trouble(self, error: Exception) -> None:
        """Once for each trouble: it is looked for every two seconds."""
        why = f"{type(error).__name__}: {error}"
        if why != self.trouble:
            self.trouble = why
            at, broker = self._around.clock.now(), self._broker.name
            self._around.sink.emit(BrokerFaulted(at=at, queue="", group=GROUP, broker=broker, call="collect", why=why))

    def _tell_lag(self, feed: Feed, depth: Depth) -> None:
        now = self._around.clock.now()
        age = (now - depth.oldest_at).total_seconds() if depth.oldest_at else 0.0
        self._around.sink.emit(
            CollectorLagged(
                at=now,
                broker=feed.broker,
                queue=feed.name,
                group=GROUP,
                waiting=_left(depth),
                seconds=max(age, 0.0),
            )
        )


async def is_collected(broker: Broker, queue: str) -> bool:
    """Whether a collector is alive on the DLQ of this queue."""
    try:
        return bool(await broker.alive(broker.dead_letters(queue).name, group=GROUP))
    except QueueNotFound:
        return False


def _left(depth: Depth) -> int:
    return depth.waiting + depth.in_flight + depth.scheduled
