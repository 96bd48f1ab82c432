"""What is measured from time to time."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry

from redrive.brokers.memory import MemoryBroker
from redrive.core.audit import Act
from redrive.core.errors import BrokerUnavailable, StoreUnavailable
from redrive.core.letter import DeadLetter
from redrive.core.life import LetterState
from redrive.core.message import Message
from redrive.core.ports import Options
from redrive.core.reason import Reason
from redrive.core.stored import Stats
from redrive.observe.bus import Bus
from redrive.observe.metrics import Metrics
from redrive.observe.sizes import EVERY, Sizes, Watched
from redrive.observe.timed_store import timed
from redrive.stores.memory import MemoryStore
from redrive.testing import ManualClock


class Away(MemoryBroker):
    async def queues(self) -> Sequence[tuple[str, str]]:
        raise BrokerUnavailable("away")


class Shut(MemoryStore):
    async def stats(self, queue: str | None = None, *, states: Sequence[LetterState] = ()) -> Stats:
        raise StoreUnavailable("shut")


class Bench:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.registry = CollectorRegistry()
        self.bus = Bus(Metrics(self.registry))
        self.broker = MemoryBroker(clock=self.clock)
        self.store = MemoryStore(clock=self.clock)

    def sizes(self, watched: Watched | None = None, *, store: MemoryStore | None = None) -> Sizes:
        brokers = [watched or Watched(self.broker)]
        return Sizes(brokers, store or self.store, clock=self.clock, sink=self.bus)

    def letter(self, name: str, *, queue: str = "orders") -> DeadLetter:
        return DeadLetter(
            letter_id=name,
            broker="memory",
            queue=queue,
            group="shop",
            payload=b"1",
            payload_sha256="ab",
            reason=Reason.REJECTED,
            fingerprint="f",
            failed_at=self.clock.now(),
        )

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_entries_of_every_dlq_are_counted(bench: Bench) -> None:
    for queue, count in (("orders", 3), ("bills", 1)):
        for number in range(count):
            await bench.broker.dead_letters(queue).send(bench.letter(f"{queue}{number}", queue=queue))
    await bench.sizes().measure()

    seen = [bench.value("redrive_dlq_entries", broker="memory", queue=queue) for queue in ("orders", "bills")]
    assert seen == [3, 1]


async def test_only_what_is_watched_is_counted_under_whatever_name(bench: Bench) -> None:
    await bench.broker.dead_letters("orders").send(bench.letter("a"))
    await bench.broker.publish("graveyard", [Message("", "graveyard", b"1")])
    await bench.sizes(Watched(bench.broker, ("bills",), ("graveyard",))).measure()

    seen = [
        bench.value("redrive_dlq_entries", broker="memory", queue=name) for name in ("orders", "bills", "graveyard")
    ]
    assert seen == [None, 0, 1]


async def test_open_and_parked_letters_are_counted_with_the_age_of_the_oldest(bench: Bench) -> None:
    await bench.store.collect([bench.letter("a"), bench.letter("x")])
    bench.clock.advance(timedelta(seconds=90))
    await bench.store.collect([bench.letter("b"), bench.letter("c", queue="bills")])
    act = Act(who="ann", verb="letters.discard", at=bench.clock.now())
    await bench.store.discard({"x": 1}, act=act)
    bench.clock.advance(timedelta(seconds=10))
    await bench.sizes().measure()

    assert [bench.value("redrive_open_letters", queue=queue) for queue in ("orders", "bills")] == [2, 1]
    assert [bench.value("redrive_oldest_letter_age_seconds", queue=queue) for queue in ("orders", "bills")] == [100, 10]


async def test_what_is_gone_is_shown_as_nothing(bench: Bench) -> None:
    sizes = bench.sizes()
    await bench.store.collect([bench.letter("a")])
    await sizes.measure()
    before = bench.value("redrive_open_letters", queue="orders")
    await bench.store.discard({"a": 1}, act=Act(who="ann", verb="letters.discard", at=bench.clock.now()))
    await sizes.measure()

    assert before == 1
    assert bench.value("redrive_open_letters", queue="orders") == 0
    assert bench.value("redrive_oldest_letter_age_seconds", queue="orders") == 0


async def test_a_group_that_somebody_paused_is_shown_until_it_is_resumed(bench: Bench) -> None:
    await bench.broker.subscribe("orders", group="shop", options=Options(owner="w"))
    sizes, seen = bench.sizes(), []
    for why in (None, "maintenance", None):
        await bench.broker.pause("orders", group="shop", why=why)
        await sizes.measure()
        seen.append(bench.value("redrive_queue_paused", broker="memory", queue="orders", group="shop"))

    assert seen == [0, 1, 0]


async def test_what_cannot_be_measured_is_counted_and_the_rest_is_measured(bench: Bench) -> None:
    await bench.store.collect([bench.letter("a")])
    await bench.sizes(Watched(Away(clock=bench.clock))).measure()
    await bench.sizes(store=Shut(clock=bench.clock)).measure()

    assert bench.value("redrive_size_failures_total", place="broker:memory") == 1
    assert bench.value("redrive_size_failures_total", place="store") == 1
    assert bench.value("redrive_open_letters", queue="orders") == 1


async def test_it_is_measured_again_every_minute(bench: Bench) -> None:
    running = asyncio.create_task(bench.sizes().run())
    seen = []
    for number in range(3):
        await bench.store.collect([bench.letter(f"{number}")])
        while bench.clock.next_wake_at() is None:  # noqa: ASYNC110 - looking is how a clock is asked
            await asyncio.sleep(0)
        seen.append(bench.value("redrive_open_letters", queue="orders"))
        assert bench.clock.next_wake_at() == bench.clock.now() + EVERY
        bench.clock.advance(EVERY)
    running.cancel()

    assert seen == [1, 2, 3]


async def test_calls_to_a_timed_store_are_counted_by_name_also_those_that_fail(bench: Bench) -> None:
    store = timed(Shut(clock=bench.clock), clock=bench.clock, sink=bench.bus)
    await store.collect([bench.letter("a")])
    await store.get("a")
    await store.get("a")
    with pytest.raises(StoreUnavailable):
        await store.stats()
    await store.aclose()

    seen = {
        call: bench.value("redrive_store_seconds_count", call=call) for call in ("collect", "get", "stats", "aclose")
    }
    assert seen == {"collect": 1, "get": 2, "stats": 1, "aclose": None}
    assert (await store.get("a")).letter.letter_id == "a"
