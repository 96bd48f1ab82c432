"""A machine that makes every move a broker, its workers and fate can make, and compares with the model after each."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from redrive.core.delivery import Delivery
from redrive.core.duration import NOW
from redrive.core.message import Message
from redrive.core.outcome import Settlement, SettleStatus
from redrive.core.place import DeadLetterPlace
from redrive.core.ports import Broker, Clock, Options, Subscription
from redrive.testing.clock import ManualClock
from redrive.testing.conformance.bench import GROUP, Bench, BrokerUnderTest
from tests.properties.model import Model, Place

T = TypeVar("T")

QUEUE = "orders"
MOST = 12  # messages: few enough that they meet often
DELAYS = st.sampled_from([0, 5, 40])  # of the machine's units of time, as all numbers here
LEASE = 60
WORKERS = st.integers(0, 1)
OUTCOMES = st.sampled_from(["ack", "retry now", "retry later", "give up"])


class SubscriptionMachine(RuleBasedStateMachine):
    """Two workers of one group, of which the second has its DLQ off and holds; another group that only watches.

    Where a late success counts, one who has lost a delivery may also hear that its message was settled before.
    """

    unit: ClassVar = timedelta(seconds=1)

    def open(self, clock: Clock) -> Broker:
        raise NotImplementedError

    def the_clock(self) -> ManualClock:
        return ManualClock()

    def the_queue(self) -> str:
        """Where the machine works; a server that is shared has one for each run."""
        return QUEUE

    def catch_up(self) -> None:
        """Wait until what has fallen due is where it belongs, if the broker has a server that moves it by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = self.the_queue()
        self.loop = asyncio.new_event_loop()
        self.clock = self.the_clock()
        self.broker = self.open(self.clock)
        self.model = Model()
        self.origins: dict[bytes, str] = {}
        self.in_hand: list[dict[bytes, Delivery]] = [{}, {}]
        self.lost: list[tuple[int, Delivery]] = []
        self.carried_out: list[tuple[int, Settlement]] = []
        self.again: Callable[[], None] | None = None
        under_test = BrokerUnderTest(
            broker=self.broker, clock=self.clock, elapse=self._elapse, reopen=self._reopen, lease=LEASE * self.unit
        )
        self.bench = Bench(under_test, queue=self.queue)
        self.workers = [
            self._worker(DeadLetterPlace()),
            self._worker(DeadLetterPlace(enabled=False, off="hold")),
        ]
        self.run(self.bench.worker(group="audit"))

    def run(self, call: Awaitable[T]) -> T:
        return self.loop.run_until_complete(call)

    def teardown(self) -> None:
        self.run(self.broker.aclose())
        self.loop.close()

    # ------------------------------------------------------------------------------------------ moves

    @initialize()
    def begin(self) -> None:
        self.publish(2, 0)

    @precondition(lambda self: len(self.model.records) < MOST)
    @rule(count=st.integers(1, 3), delay=DELAYS)
    def publish(self, count: int, delay: int) -> None:
        after = delay * self.unit
        bodies = [self.model.publish(self.clock.now() + after) for _ in range(count)]
        ids = self.run(self.broker.publish(self.queue, [Message("", self.queue, body) for body in bodies], delay=after))
        self.origins.update(zip(bodies, ids, strict=True))
        self.again = None  # a producer that publishes twice has published twice

        assert len(set(self.origins.values())) == len(self.origins)

    @rule(worker=WORKERS, limit=st.integers(0, 3), after=st.sampled_from([0, 5, 30]))
    def take(self, worker: int, limit: int, after: int) -> None:
        """After a while, up to this many messages, or for 0 one suspect."""
        self._keep(0)
        self._keep(1)
        self._pass(after)
        taken = self._fetch(worker, limit) if limit else self._fetch_suspect(worker)
        self.again = None

        for delivery in taken:
            self._now_in_hand(worker, delivery, alone=not limit)

    @precondition(lambda self: any(self.in_hand))
    @rule(prefer=WORKERS, outcomes=st.lists(OUTCOMES, min_size=1, max_size=3))
    def settle(self, prefer: int, outcomes: list[str]) -> None:
        worker = self._busy(prefer)
        chosen = list(self.in_hand[worker].values())[: len(outcomes)]
        items = [self._item(worker, each, outcome) for each, outcome in zip(chosen, outcomes, strict=False)]
        answers = self.run(self.workers[worker].settle(items))
        for item, outcome in zip(items, outcomes, strict=False):
            self._carry_out(worker, item, outcome)
        self.again = lambda: self._expect(worker, items, {SettleStatus.REPEATED})

        assert [answer.status for answer in answers] == [SettleStatus.DONE] * len(items)

    @precondition(lambda self: any(self.in_hand))
    @rule(prefer=WORKERS, count=st.integers(0, 3))
    def let_go(self, prefer: int, count: int) -> None:
        """Release up to this many deliveries, or for 0 die with all of them."""
        worker = self._busy(prefer)
        in_hand = list(self.in_hand[worker].values())
        if count:
            self._release(worker, in_hand[:count])
        else:
            self._die(worker, in_hand)

    @precondition(lambda self: self.model.at(Place.DEAD))
    @rule(pick=st.integers(0, MOST), how=st.sampled_from(["redrive", "redrive", "send back", "send back", "remove"]))
    def sort_out(self, pick: int, how: str) -> None:
        """What an operator does with one letter. A letter is collected before a store sends it back."""
        entries = self.run(self.bench.dlq.peek(1000))
        entry = entries[pick % len(entries)]
        item = self.bench.send_back(entry.letter)
        self.again = None
        if how == "redrive":
            self.run(self.bench.dlq.redrive(entry.entry_id))
        else:
            self.run(self.bench.dlq.remove(entry.entry_id))
        if how == "remove":
            self.model.move(item.body, Place.GONE)
        else:
            self.model.begin_again(item.body, self.clock.now(), generations=1)
        if how == "send back":
            sent = list(self.run(self.broker.send_back([item])))
            self.again = lambda: self._equal(sent, list(self.run(self.broker.send_back([item]))))

    @precondition(lambda self: self.model.at(Place.HELD))
    @rule()
    def free(self) -> None:
        held = self.model.at(Place.HELD)
        freed = self.run(self.broker.free(self.queue, group=GROUP))
        for body in held:
            self.model.begin_again(body, self.clock.now(), generations=0)
        self.again = lambda: self._equal(0, self.run(self.broker.free(self.queue, group=GROUP)))

        assert freed == len(held)

    # ------------------------------------------------------------------- moves that must change nothing

    @precondition(lambda self: self.again or self.carried_out or self.lost)
    @rule(pick=st.integers(0, MOST), outcome=OUTCOMES)
    def echo(self, pick: int, outcome: str) -> None:
        """Repeat the last call blindly, and an old settlement; let one speak whose delivery is lost; ask in a pause."""
        if self.again:
            self.again()
        if self.carried_out:
            worker, item = self.carried_out[pick % len(self.carried_out)]
            self._expect(worker, [item], {SettleStatus.REPEATED, SettleStatus.LOST})
        if self.lost:
            worker, delivery = self.lost[pick % len(self.lost)]
            self._speak_too_late(worker, delivery, outcome)
            self.run(self.workers[worker].release([delivery]))
            self._equal([delivery], list(self.run(self.workers[worker].extend([delivery]))))
        self._ask_in_a_pause(pick % 2)

    # ------------------------------------------------------------------------------------- invariants

    @invariant()
    def every_message_is_in_exactly_one_place(self) -> None:
        depth = self.run(self.broker.depth(self.queue, group=GROUP))
        expected = self.model.counts(self.clock.now())
        dead = [entry.letter.payload for entry in self.run(self.bench.dlq.peek(1000))]

        assert {name: getattr(depth, name) for name in expected} == expected
        assert sorted(body or b"" for body in dead) == sorted(self.model.at(Place.DEAD))

    @invariant()
    def another_group_sees_every_message_once_and_no_redrive(self) -> None:
        depth = self.run(self.broker.depth(self.queue, group="audit"))

        assert depth.waiting + depth.scheduled == len(self.model.records)

    # ---------------------------------------------------------------------------------------- the rest

    def _fetch(self, worker: int, limit: int) -> Sequence[Delivery]:
        fetchable = self.model.fetchable(self.clock.now())
        taken = self.run(self.workers[worker].fetch(limit, wait=NOW))
        bodies = [delivery.message.body for delivery in taken]

        assert len(bodies) == len(set(bodies)) <= limit
        assert set(bodies) <= fetchable
        assert bool(bodies) == bool(fetchable)
        return taken

    def _fetch_suspect(self, worker: int) -> Sequence[Delivery]:
        suspects = self.model.at(Place.SUSPECT)
        delivery = self.run(self.workers[worker].fetch_suspect())
        if delivery is None:
            assert not suspects
            return ()
        assert delivery.message.body in suspects
        return (delivery,)

    def _speak_too_late(self, worker: int, delivery: Delivery, outcome: str) -> None:
        (answer,) = self.run(self.workers[worker].settle([self._item(worker, delivery, outcome)]))
        allowed = {SettleStatus.LOST}
        if self.broker.capabilities.late_success:
            allowed |= {SettleStatus.REPEATED, SettleStatus.DONE} if outcome == "ack" else {SettleStatus.REPEATED}
        if answer.status is SettleStatus.DONE:
            self._gone(delivery.message.body)

        assert answer.status in allowed

    def _gone(self, body: bytes) -> None:
        self.model.move(body, Place.GONE)
        for worker, in_hand in enumerate(self.in_hand):
            if body in in_hand:
                self._now_lost(worker, in_hand[body])
        self.again = None

    def _ask_in_a_pause(self, worker: int) -> None:
        self.run(self.broker.pause(self.queue, group=GROUP, why="the bank is down"))
        taken = self.run(self.workers[worker].fetch(3, wait=NOW)), self.run(self.workers[worker].fetch_suspect())
        self.run(self.broker.pause(self.queue, group=GROUP, why=None))

        assert not any(taken)

    def _release(self, worker: int, chosen: list[Delivery]) -> None:
        self.run(self.workers[worker].release(chosen))
        for delivery in chosen:
            self._now_lost(worker, delivery)
            self.model.release(delivery.message.body)
        self.again = lambda: self.run(self.workers[worker].release(chosen))

    def _die(self, worker: int, in_hand: list[Delivery]) -> None:
        """The other worker keeps its leases and notices that this one's have ended."""
        self._keep(1 - worker)
        for _ in range(2):
            self._pass(LEASE * 0.6)
            self._keep(1 - worker)
        suspects = self.run(self.workers[1 - worker].heartbeat())
        for delivery in in_hand:
            self._now_lost(worker, delivery)
            self.model.die(delivery.message.body)
        self.again = None

        assert suspects == len(self.model.at(Place.SUSPECT))

    def _worker(self, place: DeadLetterPlace) -> Subscription:
        owner = f"worker-{place.off or 'dlq'}"
        return self.run(self.bench.worker(options=Options(owner=owner, dlq=place)))

    def _pass(self, units: float) -> None:
        self.clock.advance(units * self.unit)
        self.catch_up()

    async def _elapse(self, delta: timedelta) -> None:
        self.clock.advance(delta)

    async def _reopen(self) -> Broker:
        return self.broker

    def _busy(self, prefer: int) -> int:
        return prefer if self.in_hand[prefer] else 1 - prefer

    def _keep(self, worker: int) -> None:
        in_hand = list(self.in_hand[worker].values())

        assert list(self.run(self.workers[worker].extend(in_hand))) == []

    def _now_in_hand(self, worker: int, delivery: Delivery, *, alone: bool) -> None:
        record = self.model.records[delivery.message.body]
        self.in_hand[worker][delivery.message.body] = delivery
        self.model.take(delivery)

        assert delivery.alone is alone
        assert delivery.message.origin_id == self.origins[delivery.message.body]
        assert (delivery.failures, delivery.crashes) == (record.failures, record.crashes)
        assert delivery.generation == record.generation
        assert (delivery.letter_id is None) == (record.generation == 0)

    def _now_lost(self, worker: int, delivery: Delivery) -> None:
        del self.in_hand[worker][delivery.message.body]
        self.lost.append((worker, delivery))

    def _item(self, worker: int, delivery: Delivery, outcome: str) -> Settlement:
        if outcome == "give up":
            return self.bench.give_up(delivery, self.workers[worker])
        if outcome.startswith("retry"):
            return self.bench.retry(delivery, 30 * self.unit if outcome == "retry later" else NOW)
        return Settlement(delivery)

    def _carry_out(self, worker: int, item: Settlement, outcome: str) -> None:
        body = item.delivery.message.body
        del self.in_hand[worker][body]
        self.carried_out.append((worker, item))
        if outcome == "ack":
            self.model.move(body, Place.GONE)
        elif outcome == "give up":
            self.model.move(body, Place.HELD if worker else Place.DEAD)
        else:
            delay = 30 * self.unit if outcome == "retry later" else NOW
            self.model.retry(body, self.clock.now() + delay)

    def _expect(self, worker: int, items: Sequence[Settlement], statuses: set[SettleStatus]) -> None:
        assert {answer.status for answer in self.run(self.workers[worker].settle(items))} <= statuses

    def _equal(self, first: object, second: object) -> None:
        assert first == second
