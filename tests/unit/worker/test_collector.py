import asyncio
from typing import Any

import pytest

from redrive.core.errors import LetterNotFound
from redrive.core.event import (
    BrokerFaulted,
    CollectorLagged,
    ConsumerPaused,
    LetterRefused,
    WorkerStarted,
    WorkerStopped,
)
from redrive.core.life import LetterState
from redrive.core.message import Message
from redrive.core.ports import Options
from redrive.core.query import Query
from redrive.core.reason import Reason
from redrive.core.redrive import RedriveOutcome
from redrive.core.stored import Collected
from redrive.core.wire import dump_outcome
from redrive.worker.collector import GROUP, is_collected
from tests.unit.core.letters import a_letter
from tests.unit.worker.collector_bench import Bench

# ----------------------------------------------------------------------------------------------- what it does


async def test_letters_move_from_the_dlq_into_the_store() -> None:
    bench = Bench()
    await bench.die(25)

    async with bench.collecting() as collector:
        await bench.drained(collector)

    assert len(await bench.ids()) == 25
    assert await bench.broker.dead_letters("orders").length() == 0
    assert collector.collected == Collected(new=25)
    assert (await bench.kept.get("orders-7")).letter.payload == b"7"
    assert (await bench.kept.get("orders-7")).letter.collected_at is not None


@pytest.mark.parametrize("keep", [False, True], ids=["moved", "copied"])
async def test_a_letter_knows_the_entry_it_was_collected_from(keep: bool) -> None:  # noqa: FBT001 - a parameter
    bench = Bench()
    await bench.die(2, dlq_entry_id="of another DLQ")
    entries = {one.letter.letter_id: one.entry_id for one in await bench.broker.dead_letters("orders").peek(10)}

    async with bench.collecting(keep=keep) as collector:
        await bench.drained(collector)
    rows = (await bench.kept.find(Query())).rows

    assert {row.letter_id: row.dlq_entry_id for row in rows} == entries


async def test_every_queue_with_a_dlq_is_found_also_one_that_comes_later() -> None:
    bench = Bench()
    await bench.die(1)

    async with bench.collecting() as collector:
        await bench.drained(collector)
        await bench.die(1, queue="mails")
        await bench.until(lambda: collector.collected.new == 2)

    assert await bench.ids() == ["mails-0", "orders-0"]


async def test_told_of_queues_it_leaves_the_others_alone() -> None:
    bench = Bench()
    await bench.die(1)
    await bench.die(1, queue="mails")

    async with bench.collecting(queues=["mails"]) as collector:
        await bench.drained(collector)

    assert await bench.ids() == ["mails-0"]
    assert await bench.broker.dead_letters("orders").length() == 1


async def test_outcomes_are_collected_and_resolve_their_letters() -> None:
    bench = Bench()
    await bench.kept.collect([a_letter(letter_id="one", generation=1)])
    outcome = RedriveOutcome(
        "one", 2, succeeded=True, reported_at=bench.clock.now(), queue="orders", group="shop", message_id="m"
    )
    queue = "orders.outcomes"
    await bench.broker.publish(queue, [Message("", queue, dump_outcome(outcome)), Message("", queue, b"gibberish")])

    async with bench.collecting() as collector:
        await bench.drained(collector)

    assert (await bench.kept.get("one")).life.state is LetterState.RESOLVED
    assert collector.collected.resolved == 1
    assert (await bench.depth(queue)).held == 1


async def test_a_letter_told_twice_is_one_letter() -> None:
    bench = Bench()
    await bench.die(3)
    async with bench.collecting() as collector:
        await bench.drained(collector)
    await bench.die(3)
    async with bench.collecting() as collector:
        await bench.drained(collector)

    assert collector.collected == Collected(known=3)
    assert len(await bench.ids()) == 3


async def test_a_foreign_letter_is_completed_from_its_entry() -> None:
    bench = Bench()
    (entry_id,) = await bench.broker.publish("orders.dlq", [Message("", "orders.dlq", b"whatever")])

    async with bench.collecting() as collector:
        await bench.drained(collector)
    (letter_id,) = await bench.ids()
    letter = (await bench.kept.get(letter_id)).letter

    assert (letter.queue, letter.group, letter.broker, letter.payload) == ("orders", "", "memory", b"whatever")
    assert (letter.error_type, letter.retry_count, letter.user_id) == ("unknown", 0, None)
    assert letter.reason is Reason.UNKNOWN
    assert letter.failed_at is not None
    assert entry_id


# ----------------------------------------------------------------------------------------------- a store in trouble


async def test_a_store_that_is_away_costs_time_and_nothing_else() -> None:
    bench = Bench()
    bench.away = True
    await bench.die(40)

    async with bench.collecting() as collector:
        await bench.until(lambda: bool(bench.events.of(ConsumerPaused)))
        start = bench.clock.now()
        await bench.until(lambda: (bench.clock.now() - start).total_seconds() > 60)
        assert await bench.ids() == []
        assert await bench.broker.dead_letters("orders").length() == 40
        bench.away = False
        await bench.drained(collector)

    assert len(await bench.ids()) == 40
    assert [name for name, _ in await bench.broker.queues()] == ["orders.dlq"]


async def test_while_the_store_is_away_no_attempt_is_spent() -> None:
    bench = Bench()
    bench.away = True
    await bench.die(10)
    async with bench.collecting():
        await bench.until(lambda: bool(bench.events.of(ConsumerPaused)))
        start = bench.clock.now()
        await bench.until(lambda: (bench.clock.now() - start).total_seconds() > 20)

    subscription = await bench.broker.subscribe("orders.dlq", group=GROUP, options=Options(owner="look"))
    deliveries = await subscription.fetch(10, wait=bench.clock.now() - bench.clock.now())

    assert [(one.failures, one.crashes) for one in deliveries] == [(0, 0)] * 10


async def test_a_letter_that_the_store_refuses_becomes_a_stub_that_points_to_its_entry() -> None:
    bench = Bench()
    bench.refuses = lambda letter: letter.payload == b"3"
    await bench.die(10)

    async with bench.collecting() as collector:
        await bench.drained(collector)
    stored = await bench.kept.get("orders-3")
    (entry,) = await bench.broker.dead_letters("orders").peek(100)

    assert len(await bench.ids()) == 10
    assert stored.letter.payload is None
    assert stored.letter.payload_sha256 == entry.letter.payload_sha256
    assert stored.letter.context["stub"]["kept_in"] == "orders.dlq"
    assert stored.letter.context["stub"]["entry_id"] == entry.entry_id
    assert entry.letter.payload == b"3"
    assert (await bench.depth()).held == 1
    assert [event.message_id for event in bench.events.of(LetterRefused)] == [entry.entry_id]


async def test_a_stub_has_short_names_whatever_the_letter_had() -> None:
    bench = Bench()
    bench.refuses = lambda letter: max(len(letter.error_type), len(letter.fingerprint)) > 1000
    await bench.die(1, error_type="\u00e4" * 5000, fingerprint="f" * 5000)

    async with bench.collecting() as collector:
        await bench.until(lambda: collector.collected.new == 1)
    (row,) = (await bench.kept.find(Query())).rows

    assert (row.error_type[:9], row.fingerprint[:9]) == ("\u00e4" * 9, "f" * 9)
    assert (await bench.depth()).held == 1


async def test_a_letter_whose_stub_is_refused_too_stays_and_the_others_go_past_it() -> None:
    bench = Bench()
    bench.refuses = lambda letter: letter.letter_id == "orders-3"
    await bench.die(10)

    async with bench.collecting() as collector:
        await bench.until(lambda: collector.collected.new == 9)
        assert await bench.broker.dead_letters("orders").length() == 1
        bench.refuses = lambda _: False
        await bench.drained(collector)

    assert len(await bench.ids()) == 10


# ----------------------------------------------------------------------------------------------- replicas, keeping, lag


async def test_replicas_share_the_work() -> None:
    bench = Bench()
    await bench.die(200)

    async with bench.collecting() as one, bench.collecting() as other:
        await bench.drained(one)

    assert one.collected.new + other.collected.new == 200
    assert sum(bench.batches) == 200


async def test_with_keep_the_entries_stay_and_are_read_once() -> None:
    bench = Bench()
    await bench.die(5)

    async with bench.collecting(keep=True) as collector:
        await bench.drained(collector)
        await bench.die(7)
        await bench.until(lambda: collector.collected.new == 7)

    assert await bench.broker.dead_letters("orders").length() == 7
    assert collector.collected == Collected(new=7)


async def test_with_keep_a_store_that_is_away_is_waited_for() -> None:
    bench = Bench()
    bench.away = True
    await bench.die(5)

    async with bench.collecting(keep=True) as collector:
        start = bench.clock.now()
        await bench.until(lambda: (bench.clock.now() - start).total_seconds() > 10)
        collected_before = collector.collected
        bench.away = False
        await bench.until(lambda: collector.collected.new == 5)

    assert collected_before == Collected()
    assert collector.collected == Collected(new=5)
    assert await bench.ids() == [f"orders-{number}" for number in range(5)]
    assert await bench.broker.dead_letters("orders").length() == 5


async def test_the_lag_is_told() -> None:
    bench = Bench()
    bench.away = True
    await bench.die(5)

    async with bench.collecting():
        await bench.until(lambda: any(event.seconds > 30 for event in bench.events.of(CollectorLagged)))

    (latest,) = bench.events.of(CollectorLagged)[-1:]
    assert (latest.queue, latest.waiting) == ("orders.dlq", 5)


async def test_work_of_the_store_that_can_wait_is_done_now_and_then() -> None:
    bench = Bench()

    async with bench.collecting():
        await bench.until(lambda: bench.tended > 2)

    assert bench.tended > 2


async def test_whether_a_queue_is_collected_can_be_asked() -> None:
    bench = Bench()
    await bench.die(1)
    assert not await is_collected(bench.broker, "orders")

    async with bench.collecting():
        assert await is_collected(bench.broker, "orders")

    assert not await is_collected(bench.broker, "orders")


@pytest.mark.parametrize("keep", [False, True])
async def test_stopping_twice_is_stopping_once(keep: bool) -> None:  # noqa: FBT001 - a parameter of the test
    bench = Bench()
    await bench.die(1)
    collector = bench.collector(keep=keep)
    await collector.start()
    ticking = asyncio.ensure_future(bench.until(lambda: False))
    await collector.stop()
    await collector.stop()
    ticking.cancel()
    collected = collector.collected
    await bench.die(5)
    start = bench.clock.now()
    await bench.until(lambda: (bench.clock.now() - start).total_seconds() > 10)

    assert collector.collected == collected
    assert len(bench.events.of(WorkerStopped)) == len(bench.events.of(WorkerStarted)) == (0 if keep else 1)
    assert not await is_collected(bench.broker, "orders")


async def test_a_store_that_has_much_to_tend_to_does_not_keep_the_collector_from_looking() -> None:
    bench = Bench()
    bench.tending = lambda: True
    await bench.die(1)

    async with bench.collecting() as collector:
        await bench.until(lambda: bench.tended > 20)
        await bench.die(1, queue="mails")
        await bench.until(lambda: collector.collected.new == 2)
        lags = len(bench.events.of(CollectorLagged))
        await bench.until(lambda: len(bench.events.of(CollectorLagged)) > lags)

    assert await bench.ids() == ["mails-0", "orders-0"]


async def test_a_mistake_of_the_store_while_it_is_tended_to_is_told_once_and_ends_nothing() -> None:
    bench = Bench()
    mistakes: list[int] = []

    def mistake() -> bool:
        mistakes.append(1)
        raise RuntimeError("a mistake")

    bench.tending = mistake
    await bench.die(1)

    async with bench.collecting() as collector:
        await bench.until(lambda: len(mistakes) > 3)
        trouble = collector.trouble
        bench.tending = None
        await bench.until(lambda: collector.trouble is None)
        await bench.die(1, queue="mails")
        await bench.until(lambda: collector.collected.new == 2)

    assert trouble == "RuntimeError: a mistake"
    assert [event.why for event in bench.events.of(BrokerFaulted)] == [trouble]


async def test_with_keep_an_entry_that_retention_has_taken_is_no_reason_to_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    await bench.die(5)
    dead_letters = type(bench.broker.dead_letters("orders"))
    peek, faults = (
        dead_letters.peek,
        [LetterNotFound("no entry 5"), RuntimeError("a mistake"), RuntimeError("a mistake")],
    )

    async def faulty(self: Any, count: int = 10, *, start: str | None = None) -> Any:
        if start is not None and faults:
            raise faults.pop()
        return await peek(self, count, start=start)

    async with bench.collecting(keep=True) as collector:
        await bench.until(lambda: collector.collected.new == 5)
        monkeypatch.setattr(dead_letters, "peek", faulty)
        await bench.until(lambda: not faults)
        await bench.die(7)
        await bench.until(lambda: collector.collected.new == 7)

    assert [event.why for event in bench.events.of(BrokerFaulted)] == ["RuntimeError: a mistake"]
