"""The bench on which an adapter is tried: what the adapter brings, and what every scenario needs."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar
from uuid import uuid4

from redrive.core.attempt import Attempt, dump_trail, extend_trail, load_trail
from redrive.core.delivery import Delivery
from redrive.core.duration import NOW
from redrive.core.letter import DeadLetter, letter_id
from redrive.core.message import Message
from redrive.core.outcome import GiveUp, RetryLater, Settlement
from redrive.core.place import named
from redrive.core.ports import LEASE, Broker, Capabilities, Clock, Depth, NativeDeadLetters, Options, Subscription
from redrive.core.reason import Reason
from redrive.core.redrive import RedriveOutcome, SendBack

T = TypeVar("T")

GROUP = "shop"
TICK = timedelta(milliseconds=100)
PATIENCE = 30  # real seconds after which a call that does not return is a bug
SURE = 6  # looks that agree


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerUnderTest:
    """What an adapter brings to the bench.

    `elapse` lets that much of the broker's time pass: a manual clock jumps, a server with a clock of its own is
    waited for. `reopen` opens the same data as another process would. `lease` is short enough to be waited out,
    `patience` is how long a fetch may have to wait for what is already there.
    """

    broker: Broker
    clock: Clock
    elapse: Callable[[timedelta], Awaitable[None]]
    reopen: Callable[[], Awaitable[Broker]]
    lease: timedelta = LEASE
    patience: timedelta = NOW


@dataclass(slots=True)
class Bench:
    """One adapter, one fresh queue, and the verbs of the scenarios."""

    under_test: BrokerUnderTest
    queue: str = field(default_factory=lambda: f"orders-{uuid4().hex[:12]}")

    @property
    def broker(self) -> Broker:
        """The broker."""
        return self.under_test.broker

    @property
    def capabilities(self) -> Capabilities:
        """What the adapter says that it can do."""
        return self.under_test.broker.capabilities

    @property
    def clock(self) -> Clock:
        """The broker's clock, or one like it."""
        return self.under_test.clock

    @property
    def lease(self) -> timedelta:
        """How long a delivery stays with a worker that is not heard of."""
        return self.under_test.lease

    @property
    def dlq(self) -> NativeDeadLetters:
        """The queue's DLQ at its default place."""
        return self.broker.dead_letters(self.queue)

    @property
    def outcomes(self) -> str:
        """The queue in which the fate of redriven messages is told."""
        return named(self.capabilities.outcomes, self.queue)

    def beside(self, name: str) -> str:
        """Another queue, which can be written to in the same step as this one."""
        return f"{self.queue}.{name}" if self.capabilities.any_name else f"{{{self.queue}}}.{name}"

    async def elapse(self, delta: timedelta) -> None:
        """Let time pass."""
        await self.under_test.elapse(delta)

    async def worker(
        self,
        *,
        group: str = GROUP,
        queue: str | None = None,
        broker: Broker | None = None,
        options: Options | None = None,
    ) -> Subscription:
        """A worker of a group, by default of the group `shop` on the queue of this scenario."""
        given = options or Options(owner=new_owner())
        return await (broker or self.broker).subscribe(
            queue or self.queue, group=group, options=replace(given, lease=self.lease)
        )

    async def collector(self) -> Subscription:
        """A worker on the DLQ of this queue, whose acks move."""
        return await self.worker(queue=self.dlq.name, group="collector", options=Options(new_owner(), moves=True))

    async def publish(self, *bodies: bytes, queue: str | None = None, delay: timedelta = NOW) -> Sequence[str]:
        """Publish plain messages."""
        name = queue or self.queue
        return await self.broker.publish(name, [Message("", name, body) for body in bodies], delay=delay)

    async def take(self, worker: Subscription, count: int) -> list[Delivery]:
        """Exactly this many deliveries, which must be there."""
        taken: list[Delivery] = []
        while len(taken) < count:
            more = await worker.fetch(count - len(taken), wait=self.under_test.patience)
            assert more, f"expected {count} deliveries, got {len(taken)}"
            taken.extend(more)
        return taken

    async def take_one(self, worker: Subscription) -> Delivery:
        """One delivery, which must be there."""
        return (await self.take(worker, 1))[0]

    async def nothing_for(self, worker: Subscription) -> bool:
        """Whether a fetch finds nothing."""
        return not await worker.fetch(10, wait=NOW)

    async def one_delivery(self, body: bytes = b"1") -> tuple[Subscription, Delivery]:
        """A worker that holds one message."""
        worker = await self.worker()
        await self.publish(body)
        return worker, await self.take_one(worker)

    async def suspect(self, worker: Subscription) -> Delivery:
        """One suspect, which must be there."""
        found = await worker.fetch_suspect()
        assert found is not None, "expected a suspect"
        return found

    async def let_die(self, *, seen_by: Subscription) -> None:
        """Let every lease end, and another worker notice it."""
        await self.elapse(self.lease + timedelta(seconds=1))
        await seen_by.heartbeat()

    async def depth(self, *, group: str = GROUP, queue: str | None = None) -> Depth:
        """How much is where."""
        return await self.broker.depth(queue or self.queue, group=group)

    async def counts(self, *, group: str = GROUP) -> dict[str, int]:
        """The places of a group's messages that hold any, with how many.

        A server on which a fetch may have to wait may also move and count a moment late: it is asked until it says the
        same several times in a row.
        """
        found = [await self._counts(group)]
        while self.under_test.patience and (len(found) < SURE or any(one != found[-1] for one in found[-SURE:])):
            await asyncio.sleep(0.03)
            found.append(await self._counts(group))
        return found[-1]

    async def _counts(self, group: str) -> dict[str, int]:
        depth = await self.depth(group=group)
        names = ("waiting", "in_flight", "scheduled", "held", "dead")
        return {name: count for name in names if (count := getattr(depth, name))}

    async def finish(self, call: Awaitable[T]) -> T:
        """The answer of a call that waits for time or for others, letting time pass until it is there."""
        task = asyncio.ensure_future(call)
        try:
            async with asyncio.timeout(PATIENCE):
                while not task.done():
                    await asyncio.wait([task], timeout=0.01)
                    await self.elapse(TICK)
        finally:
            task.cancel()
        return await task

    def attempt(self, delivery: Delivery, *, why: str = "no") -> Attempt:
        """A failed run of this delivery."""
        now = self.clock.now()
        return Attempt(delivery.attempt, now, now, "ValueError", why, generation=delivery.generation)

    def retry(self, delivery: Delivery, delay: timedelta = NOW, *, why: str = "no") -> Settlement:
        """A failed attempt that is to be made again."""
        attempt = self.attempt(delivery, why=why)
        trail = dump_trail(extend_trail(load_trail(delivery.trail), attempt))
        return Settlement(delivery, RetryLater(delay), attempt=attempt, trail=trail)

    def give_up(self, delivery: Delivery, worker: Subscription) -> Settlement:
        """A message that becomes a dead letter."""
        return Settlement(delivery, GiveUp(), letter=self.letter(delivery, incarnation=worker.incarnation))

    def letter(self, delivery: Delivery, *, incarnation: str = "") -> DeadLetter:
        """The letter of a message given up."""
        message, now = delivery.message, self.clock.now()
        derived = letter_id(
            broker=self.broker.name,
            incarnation=incarnation,
            queue=message.queue,
            group=delivery.group,
            origin=message.origin_id,
        )
        return DeadLetter(
            letter_id=delivery.letter_id or derived,
            generation=delivery.generation,
            broker=self.broker.name,
            queue=message.queue,
            group=delivery.group,
            handler="shop.charge",
            original_message_id=message.origin_id,
            key=message.key,
            payload=message.body,
            payload_sha256=hashlib.sha256(message.body).hexdigest(),
            headers=message.headers,
            reason=Reason.REJECTED,
            error_type="ValueError",
            error_message="no",
            attempts=(*load_trail(delivery.trail), self.attempt(delivery)),
            retry_count=delivery.failures,
            first_failed_at=now,
            failed_at=now,
            received_at=delivery.received_at,
        )

    async def given_up(self, *bodies: bytes) -> list[DeadLetter]:
        """Letters in the DLQ, in the order of these bodies."""
        worker = await self.worker()
        await self.publish(*bodies)
        items = [self.give_up(delivery, worker) for delivery in await self.take(worker, len(bodies))]
        await worker.settle(items)
        return [item.letter for item in items if item.letter is not None]

    def send_back(self, letter: DeadLetter, *, group: str | None = GROUP) -> SendBack:
        """A letter on its way back, one generation on."""
        return SendBack(
            letter_id=letter.letter_id,
            generation=letter.generation + 1,
            queue=self.queue,
            body=letter.payload or b"",
            headers=letter.headers,
            key=letter.key,
            group=group,
            origin=letter.original_message_id,
        )

    def report(self, delivery: Delivery, *, succeeded: bool) -> RedriveOutcome:
        """What became of a redriven message."""
        return RedriveOutcome(
            letter_id=delivery.letter_id or "",
            generation=delivery.generation,
            succeeded=succeeded,
            reported_at=self.clock.now(),
            queue=delivery.message.queue,
            group=delivery.group,
            message_id=delivery.message.id,
        )


def new_owner() -> str:
    """A worker's name, unique for ever."""
    return f"worker-{uuid4().hex[:12]}"
