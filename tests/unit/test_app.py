"""What a consumer's messages go through, on the memory broker under a manual clock."""

import asyncio
import concurrent.futures
import contextlib
import contextvars
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

import redrive
from redrive.brokers.memory import MemoryBroker
from redrive.brokers.memory.subscription import MemorySubscription
from redrive.core.event import BatchSettled, ConsumerPaused, ConsumerResumed, LetterRefused, MessageDropped
from redrive.core.outcome import Settled, Settlement, SettleStatus
from redrive.core.policy import Decisions
from redrive.core.ports import Options
from redrive.testing import ManualClock, run

seen_in_context: contextvars.ContextVar[str] = contextvars.ContextVar("seen_in_context", default="clean")


@dataclass
class Order:
    id: int


def shop(**options: Any) -> redrive.App:
    return redrive.App("memory://", name="shop", **options)


async def test_a_handler_that_always_fails_gets_its_retries_and_then_a_letter() -> None:
    app = shop(version="4f2c")

    @app.consumer("orders", retry=[1, 2, 4])
    async def charge(order: Order) -> None:
        raise ValueError(f"no stock for {order.id}")

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1}, key="k", headers={"who": "me"})
        await rehearsal.drain()

    letter = rehearsal.letters.one()
    assert rehearsal.delays == [1, 2, 4]
    assert (letter.reason, letter.error_type, letter.error_message) == (
        "attempts_exhausted",
        "ValueError",
        "no stock for 1",
    )
    assert (letter.payload, letter.key, letter.headers) == (b'{"id":1}', b"k", (("who", b"me"),))
    assert letter.retry_count == 4
    assert [attempt.number for attempt in letter.attempts] == [1, 2, 3, 4]
    assert (letter.queue, letter.group, letter.app_version) == ("orders", "shop", "4f2c")


async def test_a_flaky_handler_succeeds_and_leaves_nothing_behind() -> None:
    app = shop()
    attempts = []

    @app.consumer("orders", retry=[1, 2, 4])
    async def charge(order: Order, delivery: redrive.Delivery) -> None:
        attempts.append(delivery.attempt)
        if delivery.attempt < 3:
            raise TimeoutError

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.drain()
        depth = await rehearsal.broker.depth("orders", group="shop")

    assert attempts == [1, 2, 3]
    assert not rehearsal.letters
    assert (depth.waiting, depth.in_flight, depth.scheduled, depth.dead) == (0, 0, 0, 0)


async def test_give_up_makes_a_letter_at_once_with_its_code() -> None:
    app = shop()

    @app.consumer("orders")
    async def charge(order: Order) -> None:
        raise redrive.GiveUp("no customer", code="no_customer", severity="low")

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.drain()

    letter = rehearsal.letters.one()
    assert (letter.reason, letter.error_code, letter.severity) == ("rejected", "no_customer", "low")
    assert rehearsal.delays == []


async def test_retry_later_waits_at_least_as_long_as_it_says() -> None:
    app = shop()

    @app.consumer("orders", retry=[1])
    async def charge(order: Order, delivery: redrive.Delivery) -> None:
        if delivery.attempt == 1:
            raise redrive.RetryLater("40s", "the bank is closed")

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.drain()

    assert rehearsal.delays == [40]
    assert not rehearsal.letters


async def test_an_invalid_payload_is_a_letter_at_once_that_names_the_stage() -> None:
    app = shop()
    called = []

    @app.consumer("orders")
    async def charge(order: Order) -> None:
        called.append(order)

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", b"\xff\x00 not json")
        await rehearsal.drain()

    letter = rehearsal.letters.one()
    assert (letter.reason, letter.error_code, letter.severity) == ("invalid", "invalid_json", "error")
    assert letter.context["validation_stage"] == "decode"
    assert letter.payload == b"\xff\x00 not json"
    assert called == []


async def test_a_sync_handler_runs_in_a_thread_of_its_own() -> None:
    app = shop()
    threads = []

    @app.consumer("orders")
    def charge(order: Order) -> None:
        threads.append(threading.current_thread())

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.drain()

    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


async def test_what_a_handler_sets_in_its_context_does_not_reach_the_next_one() -> None:
    app = shop()
    found = []

    @app.consumer("orders", concurrency=1)
    async def charge(order: Order) -> None:
        found.append(seen_in_context.get())
        seen_in_context.set("dirty")
        await asyncio.sleep(0)
        assert seen_in_context.get() == "dirty"

    async with run(app) as rehearsal:
        for number in range(3):
            await rehearsal.publish("orders", {"id": number})
        await rehearsal.drain()

    assert found == ["clean"] * 3


async def test_a_handler_over_its_time_limit_is_cancelled_and_has_failed() -> None:
    app = shop()

    @app.consumer("orders", retry=0, timeout=0.02)
    async def charge(order: Order) -> None:
        await asyncio.Event().wait()

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.drain()

    letter = rehearsal.letters.one()
    assert letter.error_type == "TimeoutError"
    assert "time limit" in letter.error_message


async def test_a_handler_that_is_cancelled_from_inside_has_failed() -> None:
    app = shop()

    @app.consumer("orders", retry=0)
    async def charge(order: Order) -> None:
        await asyncio.sleep(0)
        raise asyncio.CancelledError

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.drain()

    assert rehearsal.letters.one().reason == "attempts_exhausted"


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt()])
async def test_a_handler_that_asks_the_process_to_end_has_failed_and_the_worker_lives(error: BaseException) -> None:
    app = shop()

    @app.consumer("orders", retry=0)
    async def charge(order: Order) -> None:
        raise error

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.drain()

    assert rehearsal.letters.one().error_type == type(error).__name__


async def test_asyncio_timeout_and_task_groups_work_inside_a_handler() -> None:
    app = shop()
    done = []

    @app.consumer("orders")
    async def charge(order: Order) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
        done.append(order.id)

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 7})
        await rehearsal.drain()

    assert done == [7]


def test_an_output_on_another_broker_is_a_mistake() -> None:
    app = redrive.App("memory://", name="shop")

    with pytest.raises(redrive.ConfigError, match="output: expected the name of a queue on the consumer's own broker"):
        app.consumer("orders", output="redis://elsewhere/shipments")


async def test_what_a_handler_returns_goes_to_its_output_queue() -> None:
    app = shop()
    shipped = []

    @app.consumer("orders", output="shipments")
    async def charge(order: Order) -> dict[str, int] | None:
        return {"shipped": order.id} if order.id else None

    @app.consumer("shipments")
    async def ship(parcel: dict[str, int]) -> None:
        shipped.append(parcel)

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 0})
        await rehearsal.publish("orders", {"id": 5})
        await rehearsal.drain()

    assert shipped == [{"shipped": 5}]


async def test_accept_says_which_returned_values_are_failures() -> None:
    app = shop()

    @app.consumer("orders", retry=0, accept=lambda result: result["status"] != "error")
    async def charge(order: Order) -> dict[str, str]:
        return {"status": "error" if order.id else "ok"}

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 0})
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.drain()

    letter = rehearsal.letters.one()
    assert letter.payload == b'{"id":1}'
    assert letter.error_type.endswith("NotAccepted")


async def test_an_expired_message_is_not_run() -> None:
    app = shop()
    called = []

    @app.consumer("orders")
    async def charge(order: Order) -> None:
        called.append(order)

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1}, delay="10s", expires="5s")
        await rehearsal.drain()

    assert rehearsal.letters.one().reason == "expired"
    assert called == []


async def test_the_idempotency_key_is_the_same_in_every_attempt() -> None:
    app = shop()
    keys = []

    @app.consumer("orders", retry=[1, 1])
    async def charge(message: redrive.Message) -> None:
        keys.append(message.idempotency_key)
        raise ValueError

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.drain()

    assert len(keys) == 3
    assert len(set(keys)) == 1


async def test_a_delivery_tells_its_deadline() -> None:
    app = shop()
    left = []

    @app.consumer("orders", timeout="30s")
    async def charge(order: Order, delivery: redrive.Delivery) -> None:
        assert delivery.deadline is not None
        left.append((delivery.deadline - delivery.received_at).total_seconds())

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.drain()

    assert left == [30]


async def test_lifespan_opens_before_the_first_message_and_closes_after_the_last() -> None:
    story = []

    class Resources:
        def pay(self, number: int) -> None:
            story.append(f"paid {number}")

    async def lifespan() -> AsyncIterator[Resources]:
        story.append("opened")
        yield Resources()
        story.append("closed")

    app = shop(lifespan=lifespan)

    @app.consumer("orders")
    async def charge(order: Order, res: Resources) -> None:
        res.pay(order.id)

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.drain()

    assert story == ["opened", "paid 1", "closed"]


async def test_an_exception_from_a_batch_halves_it_until_the_one_that_fails_is_alone() -> None:
    app = shop()
    done: list[int] = []

    @app.batch_consumer("orders", size=8, retry=0, concurrency=1)
    async def charge(orders: list[Order]) -> None:
        if any(order.id == 5 for order in orders):
            raise ValueError("five")
        done.extend(order.id for order in orders)

    async with run(app) as rehearsal:
        for number in range(8):
            await rehearsal.publish("orders", {"id": number})
        await rehearsal.drain()

    assert rehearsal.letters.one().payload == b'{"id":5}'
    assert rehearsal.letters.one().retry_count == 1
    assert sorted(done) == [0, 1, 2, 3, 4, 6, 7]


async def test_a_batch_handler_answers_item_by_item() -> None:
    app = shop()

    @app.batch_consumer("orders", size=3, retry=[1])
    async def charge(orders: list[Order], deliveries: list[redrive.Delivery]) -> list[Any]:
        answers: list[Any] = []
        for order, delivery in zip(orders, deliveries, strict=True):
            if order.id == 1:
                answers.append(redrive.GiveUp("no", code="never"))
            elif order.id == 2 and delivery.attempt == 1:
                answers.append(redrive.RetryLater("3s"))
            else:
                answers.append(redrive.ACK)
        return answers

    async with run(app) as rehearsal:
        for number in range(3):
            await rehearsal.publish("orders", {"id": number})
        await rehearsal.drain()

    assert rehearsal.letters.one().error_code == "never"
    assert rehearsal.delays == [3]


async def test_an_outage_dead_letters_nothing() -> None:
    app = shop()
    down = True
    done = set()

    @app.consumer("orders", retry=[1, 2, 4], concurrency=10)
    async def charge(order: Order) -> None:
        if down:
            raise ConnectionError("the database is gone")
        done.add(order.id)

    async with run(app) as rehearsal:
        for number in range(200):
            await rehearsal.publish("orders", {"id": number})
        with pytest.raises(TimeoutError, match="orders"):
            await rehearsal.drain()
        assert any(isinstance(event, ConsumerPaused) for event in rehearsal.events)
        spent = len(rehearsal.delays)
        down = False
        await rehearsal.drain()

    assert rehearsal.letters == []
    assert spent < 20  # only what failed before the breaker opened
    assert done == set(range(200))
    assert any(isinstance(event, ConsumerResumed) for event in rehearsal.events)


async def test_a_storm_of_permanent_failures_is_slowed_to_one_letter_per_probe() -> None:
    app = shop()

    @app.consumer("orders", concurrency=1)
    async def charge(order: Order) -> None:
        raise redrive.GiveUp("a bad deploy")

    async with run(app) as rehearsal:
        for number in range(1000):
            await rehearsal.publish("orders", {"id": number})
        with pytest.raises(TimeoutError, match=r"breaker of orders is still open.* breaker=None"):
            await rehearsal.drain()
        depth = await rehearsal.broker.depth("orders", group="shop")

    assert 50 <= len(rehearsal.letters) <= 160
    assert depth.waiting + len(rehearsal.letters) == 1000


async def test_with_the_dlq_off_a_message_is_held_until_it_is_freed() -> None:
    app = shop()
    broken = True

    @app.consumer("orders", retry=0, dlq=redrive.DeadLetterPlace(enabled=False, off="hold"))
    async def charge(order: Order) -> None:
        if broken:
            raise ValueError

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.drain()
        held = await rehearsal.broker.depth("orders", group="shop")
        broken = False
        assert await rehearsal.broker.free("orders", group="shop") == 1
        await rehearsal.drain()
        freed = await rehearsal.broker.depth("orders", group="shop")

    assert (held.held, held.dead) == (1, 0)
    assert (freed.held, freed.waiting, freed.dead) == (0, 0, 0)


async def test_with_the_dlq_off_a_message_is_dropped_only_if_asked_for_and_its_hash_is_told() -> None:
    app = shop()

    @app.consumer("orders", retry=0, dlq=redrive.DeadLetterPlace(enabled=False, off="drop"))
    async def charge(order: Order) -> None:
        raise ValueError

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.drain()
        depth = await rehearsal.broker.depth("orders", group="shop")

    (dropped,) = [event for event in rehearsal.events if isinstance(event, MessageDropped)]
    assert len(dropped.payload_sha256) == 64
    assert (depth.held, depth.dead, depth.waiting) == (0, 0, 0)


async def test_one_fixed_dlq_serves_many_queues() -> None:
    app = shop()

    @app.consumer("orders", retry=0, dlq="all.dead")
    async def charge(order: Order) -> None:
        raise ValueError

    @app.consumer("refunds", retry=0, dlq="all.dead")
    async def refund(order: Order) -> None:
        raise ValueError

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.publish("refunds", {"id": 2})
        await rehearsal.drain()
        place = redrive.DeadLetterPlace(name="all.dead")
        entries = await rehearsal.broker.dead_letters("orders", place=place).peek()

    assert [entry.letter.queue for entry in entries] == ["orders", "refunds"]


async def test_a_letter_the_broker_refuses_is_held_and_written_when_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    app = shop()
    refusing = True

    @app.consumer("orders", retry=0)
    async def charge(order: Order) -> None:
        if order.id == 1:
            raise ValueError

    settle_one = MemorySubscription._settle  # noqa: SLF001 - nothing in memory ever refuses by itself

    def maybe_refuse(self: MemorySubscription, item: Settlement) -> Settled:
        if refusing and item.letter is not None:
            return Settled(SettleStatus.REFUSED, "the disk is full")
        return settle_one(self, item)

    monkeypatch.setattr(MemorySubscription, "_settle", maybe_refuse)
    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.publish("orders", {"id": 2})
        while not any(isinstance(event, LetterRefused) for event in rehearsal.events):  # noqa: ASYNC110
            await asyncio.sleep(0)
        while not any(isinstance(event, BatchSettled) and event.acked for event in rehearsal.events):  # noqa: ASYNC110
            await asyncio.sleep(0)
        depth = await rehearsal.broker.depth("orders", group="shop")
        assert (depth.waiting, depth.in_flight, depth.dead) == (0, 1, 0)
        refusing = False
        while not rehearsal.letters:
            rehearsal.clock.advance("100ms")
            await asyncio.sleep(0)

    assert rehearsal.letters.one().payload == b'{"id":1}'


def test_every_mistake_of_a_consumer_is_reported_at_once() -> None:
    app = shop()

    with pytest.raises(redrive.ConfigError) as caught:

        @app.consumer("orders", retry=-1, timeout="soon", concurrency=0, colour="red")  # type: ignore[call-arg]
        async def charge(order: Order) -> None: ...

    keys = [mistake.partition(":")[0] for mistake in caught.value.mistakes]
    assert keys == ["max_retries", "timeout", "concurrency", "colour"]


def test_a_consumer_is_returned_unchanged_so_that_tests_can_call_it() -> None:
    app = shop()

    def charge(order: Order) -> int:
        return order.id

    assert app.consumer("orders")(charge) is charge


def test_two_handlers_for_one_queue_are_a_mistake() -> None:
    app = shop()
    app.consumer("orders")(lambda order: None)

    with pytest.raises(redrive.ConfigError, match="has a handler already"):
        app.consumer("orders")


async def test_publishing_without_opening_the_app_says_how() -> None:
    with pytest.raises(redrive.ConfigError, match="async with app"):
        await shop().publish("orders", {})


async def test_a_payload_type_that_raises_whatever_it_likes_has_failed_and_the_lane_lives() -> None:
    app = shop()

    class Moody(dict[str, int]):
        @classmethod
        def model_validate_json(cls, body: bytes) -> "Moody":
            raise RuntimeError("not today")

    @app.consumer("orders", retry=[1], concurrency=1)
    async def charge(order: Moody) -> None: ...

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.publish("orders", {"id": 2})
        await rehearsal.drain()

    assert [letter.error_message for letter in rehearsal.letters] == ["not today"] * 2


async def test_a_failure_that_cannot_be_judged_makes_the_message_wait_and_the_lane_lives(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = shop()
    judged = []

    decide = Decisions.after

    def at_a_loss_once(*words: Any, **facts: Any) -> Any:
        judged.append(facts["now"])
        if len(judged) == 1:
            raise ZeroDivisionError
        return decide(*words, **facts)

    monkeypatch.setattr(Decisions, "after", at_a_loss_once)

    @app.consumer("orders", retry=[1], concurrency=1)
    async def charge(order: Order) -> None:
        raise ValueError

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": 1})
        await rehearsal.drain()

    assert rehearsal.letters.one().reason == "attempts_exhausted"
    assert (judged[1] - judged[0]).total_seconds() == 30
    assert "cannot judge" in caplog.text


def cancelled_from_inside() -> dict[str, Any]:
    """Handlers that are cancelled, but not by us."""

    async def awaits_a_cancelled_task(order: Order) -> None:
        task = asyncio.create_task(asyncio.sleep(10))
        task.cancel()
        await task

    async def cancels_itself(order: Order) -> None:
        current = asyncio.current_task()
        assert current is not None
        current.cancel()
        await asyncio.sleep(10)

    def raises_it_in_a_thread(order: Order) -> None:
        raise concurrent.futures.CancelledError

    def raises_asyncios_in_a_thread(order: Order) -> None:
        raise asyncio.CancelledError

    return {
        handler.__name__: handler
        for handler in (
            awaits_a_cancelled_task,
            cancels_itself,
            raises_it_in_a_thread,
            raises_asyncios_in_a_thread,
        )
    }


@pytest.mark.parametrize("name", cancelled_from_inside())
async def test_a_cancellation_from_inside_is_a_failure_and_the_lane_lives(name: str) -> None:
    app = shop()
    handler = cancelled_from_inside()[name]
    app.consumer("orders", retry=0, concurrency=1)(handler)

    async with run(app) as rehearsal:
        for number in range(4):
            await rehearsal.publish("orders", {"id": number})
        await rehearsal.drain()

    assert len(rehearsal.letters) == 4


async def test_a_handler_that_swallows_its_own_cancellation_has_succeeded_and_the_lane_lives() -> None:
    app = shop()
    done = []

    @app.consumer("orders", retry=0, concurrency=1)
    async def charge(order: Order) -> None:
        current = asyncio.current_task()
        assert current is not None
        current.cancel()
        if order.id % 2:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(10)
        done.append(order.id)

    async with run(app) as rehearsal:
        for number in range(4):
            await rehearsal.publish("orders", {"id": number})
        await rehearsal.drain()

    assert sorted(done) == [0, 1, 2, 3]
    assert rehearsal.letters == []


async def test_a_batch_over_its_time_limit_is_halved_until_the_one_that_hangs_is_alone() -> None:
    app = shop()
    done: list[int] = []

    @app.batch_consumer("orders", size=4, retry=0, timeout=0.05, concurrency=1)
    async def charge(orders: list[Order]) -> None:
        if any(order.id == 2 for order in orders):
            await asyncio.Event().wait()
        done.extend(order.id for order in orders)

    async with run(app) as rehearsal:
        for number in range(4):
            await rehearsal.publish("orders", {"id": number})
        await rehearsal.drain()

    assert rehearsal.letters.one().payload == b'{"id":2}'
    assert sorted(done) == [0, 1, 3]


async def test_exceptions_that_a_batch_handler_returns_are_failures() -> None:
    app = shop()

    @app.batch_consumer("orders", size=3, retry=0)
    async def charge(orders: list[Order]) -> list[Any]:
        async def one(order: Order) -> None:
            if order.id:
                raise ValueError(order.id)

        return await asyncio.gather(*map(one, orders), return_exceptions=True)

    async with run(app) as rehearsal:
        for number in range(3):
            await rehearsal.publish("orders", {"id": number})
        await rehearsal.drain()

    assert sorted(letter.error_message for letter in rehearsal.letters) == ["1", "2"]


async def test_a_plain_batch_handler_has_a_fresh_context_and_may_raise_stop_iteration() -> None:
    app = shop()
    found = []

    @app.batch_consumer("orders", size=1, retry=0, concurrency=1)
    def charge(orders: list[Order]) -> None:
        found.append(seen_in_context.get())
        seen_in_context.set("dirty")
        if orders[0].id == 1:
            raise StopIteration

    async with run(app) as rehearsal:
        for number in range(3):
            await rehearsal.publish("orders", {"id": number})
        await rehearsal.drain()

    assert found == ["clean"] * 3
    assert rehearsal.letters.one().payload == b'{"id":1}'


async def test_suspects_in_an_outage_are_probed_like_everything_else() -> None:
    app = shop()
    calls = []
    down = True

    @app.consumer("orders", retry=[1, 1, 1])
    async def charge(order: Order) -> None:
        calls.append(order.id)
        if down:
            raise ConnectionError

    clock = ManualClock()
    broker = MemoryBroker(clock=clock)
    dead = await broker.subscribe("orders", group="shop", options=Options(owner="dead", lease=timedelta(seconds=1)))
    await broker.publish(
        "orders", [redrive.Message("", "orders", f'{{"id":{number}}}'.encode()) for number in range(40)]
    )
    await dead.fetch(40, wait=timedelta(0))
    clock.advance("2s")

    async def let_time_pass() -> None:
        while True:
            clock.advance("100ms")
            for _ in range(20):
                await asyncio.sleep(0)

    passing = asyncio.create_task(let_time_pass())
    async with app.attach(broker, clock=clock).worker():
        await clock.sleep(timedelta(minutes=2))
        assert 20 <= len(calls) <= 40  # a few probes, not a storm of them
        down = False
        await clock.sleep(timedelta(minutes=5))
        depth = await broker.depth("orders", group="shop")
    passing.cancel()
    assert (depth.waiting, depth.in_flight, depth.scheduled, depth.dead) == (0, 0, 0, 0)
    assert set(calls) == set(range(40))


def test_a_dlq_that_is_the_queue_itself_is_a_mistake() -> None:
    with pytest.raises(redrive.ConfigError, match="another queue"):
        shop().consumer("orders", dlq="orders")


async def test_a_consumer_that_cannot_start_does_not_keep_the_others_waiting() -> None:
    app = shop()
    app.consumer("fine")(lambda order: None)

    @app.consumer("orders")
    async def charge(order: Order, database: threading.Thread) -> None: ...

    with pytest.raises(redrive.ConfigError, match="database"):
        async with asyncio.timeout(5), app.attach(MemoryBroker(clock=ManualClock()), clock=ManualClock()).worker():
            pass
