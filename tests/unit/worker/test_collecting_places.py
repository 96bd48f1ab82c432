import asyncio
from collections.abc import Sequence

import pytest

from redrive.brokers.memory import MemoryBroker
from redrive.core.errors import BrokerError, BrokerUnavailable
from redrive.core.event import (
    BrokerFaulted,
    WorkerStarted,
    WorkerStopped,
)
from redrive.core.life import LetterState
from redrive.core.message import Message
from redrive.core.ports import Options, Subscription
from redrive.core.query import Query
from redrive.core.redrive import RedriveOutcome
from redrive.core.wire import dump_outcome
from tests.unit.core.letters import a_letter
from tests.unit.worker.collector_bench import Bench


async def test_a_letter_has_the_name_that_the_collector_has_for_its_broker() -> None:
    bench = Bench()
    bench.broker = MemoryBroker(name="cache", clock=bench.clock)
    await bench.die(1)

    async with bench.collecting() as collector:
        await bench.drained(collector)

    assert (await bench.kept.get("orders-0")).letter.broker == "cache", "the worker had called it memory"


async def test_a_dlq_of_any_name_gives_its_letters_the_queue_that_was_said() -> None:
    bench = Bench()
    await bench.broker.publish("graveyard", [Message("", "graveyard", b"whatever")])
    outcome = RedriveOutcome(
        "one", 1, succeeded=True, reported_at=bench.clock.now(), queue="orders", group="", message_id="m"
    )
    await bench.kept.collect([a_letter(letter_id="one")])
    await bench.broker.publish("orders.outcomes", [Message("", "orders.outcomes", dump_outcome(outcome))])

    async with bench.collecting(queues=[], dlqs={"graveyard": "orders"}) as collector:
        await bench.drained(collector)

    (row,) = await bench.kept.select(Query(states=(LetterState.OPEN,)), limit=10)
    assert row.queue == "orders"
    assert (await bench.kept.get("one")).life.state is LetterState.RESOLVED


async def test_a_dlq_that_is_named_is_collected_though_its_queue_is_not() -> None:
    bench = Bench()
    await bench.die(1)
    await bench.die(1, queue="mails")

    async with bench.collecting(queues=["mails"], dlqs=["orders.dlq"]) as collector:
        await bench.drained(collector)

    assert await bench.ids() == ["mails-0", "orders-0"]


class Wayward(MemoryBroker):
    """A broker that may be away, and on which some names cannot be consumed."""

    away = False
    refused = ""

    async def queues(self) -> Sequence[tuple[str, str]]:
        if self.away:
            raise BrokerUnavailable("nobody answers")
        return await super().queues()

    async def subscribe(self, queue: str, *, group: str, options: Options) -> Subscription:
        if queue == self.refused:
            raise BrokerError("of another type")
        return await super().subscribe(queue, group=group, options=options)


async def test_a_patient_collector_waits_for_a_broker_that_is_away_and_says_so_once() -> None:
    bench = Bench()
    bench.broker = broker = Wayward(clock=bench.clock)
    await bench.die(1)
    broker.away = True
    with pytest.raises(BrokerUnavailable):
        await bench.collector().start()

    collector = bench.collector()
    await collector.start(patient=True)
    start = bench.clock.now()
    await bench.until(lambda: (bench.clock.now() - start).total_seconds() > 20)
    assert collector.trouble == "BrokerUnavailable: nobody answers"
    assert [(event.call, event.why) for event in bench.events.of(BrokerFaulted)] == [("collect", collector.trouble)]

    broker.away = False
    await bench.until(lambda: collector.collected.new == 1)
    await bench.until(lambda: collector.trouble is None)
    stopping = asyncio.ensure_future(collector.stop())
    await bench.until(stopping.done)


async def test_a_dlq_that_cannot_be_consumed_does_not_keep_the_others() -> None:
    bench = Bench()
    bench.broker = broker = Wayward(clock=bench.clock)
    for queue in ("mails", "orders", "rates"):
        await bench.die(1, queue=queue)
    broker.refused = "orders.dlq"

    collector = bench.collector()
    await collector.start(patient=True)
    await bench.until(lambda: collector.collected.new == 2)
    assert collector.trouble == "BrokerError: orders.dlq: of another type"

    broker.refused = ""
    await bench.until(lambda: collector.collected.new == 3)
    stopping = asyncio.ensure_future(collector.stop())
    await bench.until(stopping.done)
    left = {(event.queue, event.owner) for event in bench.events.of(WorkerStarted)}
    assert left <= {(event.queue, event.owner) for event in bench.events.of(WorkerStopped)}, "nobody stays behind"
