"""Handlers that take nothing but the payload run over rows of new messages; each is treated as if it were alone."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple

import pytest

from redrive.app import App
from redrive.core.delivery import Delivery
from redrive.core.event import BatchSettled, ConsumerPaused, DeliveryLost, Event, WorkerStopped
from redrive.core.message import Message
from redrive.core.outcome import GiveUp
from redrive.core.row import InRows, in_rows
from redrive.testing import ManualClock, run
from redrive.worker.current import current_delivery
from redrive.worker.lanes import Lanes
from redrive.worker.payload import read_signature
from redrive.worker.run import Run
from redrive.worker.runner import AsyncRunner, Deadline

WHO: ContextVar[object] = ContextVar("who")


class Shop:
    """An app with one consumer at work by the real clock, and what has become of its messages so far."""

    def __init__(self, handler: Callable[..., Any], **options: Any) -> None:
        self.app = App("memory://", name="shop")
        self.app.consumer("orders", **options)(handler)
        self.acked = self.dead = self.retried = 0
        self.lost: list[str] = []
        self.released = 0
        self._more = asyncio.Event()
        self.app.bus.subscribe(self._hear)

    def _hear(self, event: Event) -> None:
        if isinstance(event, BatchSettled):
            self.acked, self.dead = self.acked + event.acked, self.dead + event.dead
            self.retried += event.retried
        elif isinstance(event, DeliveryLost):
            self.lost.append(event.message_id)
        elif isinstance(event, WorkerStopped):
            self.released += event.released
        self._more.set()

    async def publish(self, *bodies: bytes) -> None:
        await self.app.broker.publish("orders", [Message("", "orders", body) for body in bodies])

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._more.clear()
            await self._more.wait()


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


async def worked(handler: Callable[..., Any], *bodies: bytes, **options: Any) -> "Counted":
    """What became of these messages, which were fetched in one row."""
    app = App("memory://", name="shop")
    app.consumer("orders", **options)(handler)
    async with run(app) as shop:
        await shop.broker.publish("orders", [Message("", "orders", body) for body in bodies])
        await shop.drain()
    settled = [event for event in shop.events if isinstance(event, BatchSettled)]
    return Counted(*(sum(getattr(event, name) for event in settled) for name in Counted._fields))


class Counted(NamedTuple):
    """How the messages of an app have ended."""

    acked: int
    dead: int
    retried: int


class Stubborn:
    """A value that does not let itself be compared."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise TypeError("no")


@pytest.mark.parametrize(
    "make", [lambda body: body, lambda _: "the same", lambda _: Stubborn()], ids=["another", "the same", "stubborn"]
)
async def test_what_a_handler_sets_in_its_context_is_not_seen_by_the_next(make: Callable[[bytes], object]) -> None:
    seen: list[object] = []

    async def handle(body: bytes) -> None:
        seen.append(WHO.get(None))
        if body != b"1":
            WHO.set(make(body))

    shop = await worked(handle, *numbers(4))

    assert seen == [None] * 4
    assert shop.acked == 4


async def test_only_the_message_whose_handler_fails_has_failed() -> None:
    runs: list[bytes] = []

    async def handle(body: bytes) -> None:
        runs.append(body)
        if body == b"2":
            raise GiveUp("no", code="no")

    shop = await worked(handle, *numbers(5))

    assert runs == numbers(5)
    assert (shop.acked, shop.dead) == (4, 1)


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError(), ValueError("no")])
async def test_whatever_a_handler_raises_is_its_failure_and_the_next_goes_on(error: BaseException) -> None:
    runs: list[bytes] = []

    async def handle(body: bytes) -> None:
        runs.append(body)
        if body == b"1" and runs.count(body) == 1:
            raise error

    shop = await worked(handle, *numbers(3), retry=[0])

    assert sorted(runs) == [b"0", b"1", b"1", b"2"]
    assert (shop.acked, shop.retried) == (3, 1)


async def test_a_handler_that_waits_lets_those_behind_it_go_on() -> None:
    began: list[bytes] = []
    last = asyncio.Event()

    async def handle(body: bytes) -> None:
        began.append(body)
        if body == b"5":
            last.set()
        elif body in (b"1", b"3"):
            await last.wait()

    shop = await worked(handle, *numbers(6), concurrency=3)

    assert began == numbers(6)
    assert shop.acked == 6


async def test_no_more_wait_at_once_than_there_are_lanes() -> None:
    waiting, most = 0, 0

    async def handle(body: bytes) -> None:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await asyncio.sleep(0)
        waiting -= 1

    shop = await worked(handle, *numbers(50), concurrency=3)

    assert shop.acked == 50
    assert most == 3


async def test_a_handler_that_fails_after_it_has_waited_fails_alone() -> None:
    runs: list[bytes] = []

    async def handle(body: bytes) -> None:
        runs.append(body)
        await asyncio.sleep(0)
        if body == b"1":
            raise GiveUp("no", code="no")

    shop = await worked(handle, *numbers(4), concurrency=2)

    assert sorted(runs) == numbers(4)
    assert (shop.acked, shop.dead) == (3, 1)


async def test_a_handler_over_its_time_limit_is_cancelled_and_its_neighbours_are_done() -> None:
    cancelled: list[bytes] = []

    async def handle(body: bytes) -> None:
        if body == b"1":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(body)
                raise

    shop = await worked(handle, *numbers(3), retry=0, timeout=0.05)

    assert cancelled == [b"1"]
    assert (shop.acked, shop.dead) == (2, 1)


async def test_a_handler_knows_which_delivery_it_was_given() -> None:
    ids: list[tuple[str, bytes]] = []

    async def handle(body: bytes) -> None:
        before = current_delivery()
        if body == b"1":
            await asyncio.sleep(0)
        after = current_delivery()
        assert before is not None
        assert before is after
        ids.append((before.message.id, before.message.body))

    await worked(handle, *numbers(3))

    assert sorted(body for _, body in ids) == numbers(3)
    assert len({name for name, _ in ids}) == 3
    assert current_delivery() is None


async def test_a_payload_that_is_not_what_the_handler_asks_for_is_dead_at_once() -> None:
    seen: list[dict[str, int]] = []

    async def handle(order: dict[str, int]) -> None:
        seen.append(order)

    shop = await worked(handle, b'{"id": 1}', b"no JSON", b'{"id": 2}')

    assert seen == [{"id": 1}, {"id": 2}]
    assert (shop.acked, shop.dead, shop.retried) == (2, 1, 0)


async def test_handlers_that_take_their_time_do_not_keep_the_others_from_their_turn() -> None:
    turns: list[bytes] = []
    runs: list[bytes] = []

    async def others() -> None:
        while True:
            turns.extend(runs[-1:])
            await asyncio.sleep(0)

    async def handle(body: bytes) -> None:
        runs.append(body)
        time.sleep(0.004)  # noqa: ASYNC251 - a handler that blocks

    beside = asyncio.create_task(others())
    shop = await worked(handle, *numbers(12))
    beside.cancel()

    assert shop.acked == 12
    assert len({*turns}) > 2


class Queue:
    """A consumer with one lane and more in a row than it can begin: each handler waits until it is let go."""

    def __init__(self) -> None:
        self.shop = Shop(self.handle, concurrency=1)
        self.began: list[bytes] = []
        self.first, self.go = asyncio.Event(), asyncio.Event()

    async def handle(self, body: bytes) -> None:
        if body == b"quick":
            return
        self.began.append(body)
        self.first.set()
        await self.go.wait()

    async def fill(self) -> None:
        """Let the worker learn that its handlers are quick, so that it fetches more than one; then let one wait."""
        await self.shop.publish(*[b"quick"] * 500)
        await self.shop.until(lambda: self.shop.acked == 500)
        await self.shop.publish(*numbers(4))
        await self.first.wait()


async def test_what_was_lost_before_it_has_begun_does_not_begin() -> None:
    queue = Queue()
    shop = queue.shop
    async with shop.app.worker() as crew:
        await queue.fill()
        lost = [each for each in crew.workers[0].in_hand() if each.message.body in (b"2", b"3")]
        crew.workers[0].lose(lost)
        queue.go.set()
        await shop.until(lambda: shop.acked == 502)

    assert queue.began == [b"0", b"1"]
    assert shop.lost == [each.message.id for each in lost]
    assert len(lost) == 2


async def test_what_has_not_begun_when_the_worker_stops_is_handed_back_unspent() -> None:
    queue = Queue()
    shop = queue.shop
    async with shop.app.worker():
        await queue.fill()
        asyncio.get_running_loop().call_soon(queue.go.set)

    assert queue.began == [b"0"]
    assert (shop.acked, shop.released, shop.retried) == (501, 3, 0)


async def test_when_failures_become_the_rule_the_rest_of_the_row_is_handed_back_unspent() -> None:
    runs: list[bytes] = []

    def paused() -> list[int]:
        return [event.released for event in shop.events if isinstance(event, ConsumerPaused)]

    async def handle(body: bytes) -> None:
        runs.append(body)
        if not paused():
            raise ConnectionError("down")

    app = App("memory://", name="shop")
    app.consumer("orders", retry=[1])(handle)
    async with run(app) as shop:
        await shop.broker.publish("orders", [Message("", "orders", body) for body in numbers(100)])
        await shop.drain()

    assert sum(paused()) > 0
    assert {*runs} == {*numbers(100)}
    assert len(runs) < 200
    assert shop.letters == []


async def test_rows_are_a_sequence_of_deliveries_for_whoever_does_not_know_rows() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    given = [Delivery(Message(str(number), "orders", body), "shop", at) for number, body in enumerate(numbers(3))]
    rows = in_rows(given)
    assert isinstance(rows, InRows)
    (row,) = rows.rows

    assert row.bodies == numbers(3)
    assert [*rows] == given
    assert rows[1] is row.delivery(1) is row.from_(1).delivery(0)
    assert [*rows[1:]] == row.from_(1).deliveries()
    assert len(InRows([row.first(1), row.from_(2)])) == 2


@pytest.mark.parametrize(
    "past", [{"failures": 1}, {"crashes": 1}, {"letter_id": "1"}, {"alone": True}, {"due_at": datetime.now(UTC)}]
)
def test_what_something_has_happened_to_is_in_no_row(past: dict[str, Any]) -> None:
    one = Delivery(Message("1", "orders", b""), "shop", datetime.now(UTC))

    assert in_rows([one, one._replace(**past)]) == [one, one._replace(**past)]


def test_what_may_expire_is_in_no_row() -> None:
    now = datetime.now(UTC)
    one = Delivery(Message("1", "orders", b"", expires_at=now), "shop", now)

    assert in_rows([one]) == [one]


async def test_an_equal_value_of_another_message_is_not_seen_either() -> None:
    given: list[str] = []
    seen: list[bool] = []
    WHO.set(given)

    async def handle(body: bytes) -> None:
        seen.append(WHO.get() is given)
        WHO.set([])

    await worked(handle, *numbers(3))

    assert seen == [True] * 3


async def test_while_a_failure_is_judged_it_is_known_whose_it_is() -> None:
    asked: list[bytes | None] = []

    class Asking(Exception):
        def __str__(self) -> str:
            delivery = current_delivery()
            asked.append(delivery and delivery.message.body)
            return "no"

    async def handle(body: bytes) -> None:
        if body == b"1":
            raise Asking

    shop = await worked(handle, *numbers(3), retry=0)

    assert {*asked} == {b"1"}
    assert (shop.acked, shop.dead) == (2, 1)


class Bench:
    """Lanes with what they need around them, one of them at work."""

    tracing = None
    plain = minds_failures_only = True
    has_budget = False
    untold = 0

    def __init__(self, handler: Callable[[bytes], Coroutine[Any, Any, None]]) -> None:
        self.ended: list[object] = []
        self.hungry = asyncio.Event()
        runner = AsyncRunner(
            handler,
            signature=read_signature(handler),
            outcomes=self,  # type: ignore[arg-type]
            deadline=Deadline(ManualClock(), None, wanted=False),
            ended=self.ended.append,
        )
        self.lanes = Lanes(
            runner,
            outcomes=self,  # type: ignore[arg-type]
            settler=self,  # type: ignore[arg-type]
            concurrency=1,
            hungry=self.hungry.set,
        )

    def kick(self) -> None: ...

    def ran(self, _: object) -> None: ...


def delivery(body: bytes, **past: Any) -> Delivery:
    return Delivery(Message("", "orders", body), "shop", datetime(2026, 3, 1, tzinfo=UTC), **past)


async def test_rows_and_what_is_tried_again_take_turns_however_much_there_is_of_the_other() -> None:
    runs: list[bytes] = []

    async def handle(body: bytes) -> None:
        time.sleep(0.0005)  # noqa: ASYNC251 - so that a turn ends before the messages do
        runs.append(body)

    bench = Bench(handle)
    bench.lanes.open()
    bench.lanes.feed([delivery(b"again", failures=1)] * 100)
    bench.lanes.feed(in_rows([delivery(b"new")] * 100))
    await bench.lanes.quiet()
    turns = [kind for kind, _ in groupby(runs)]
    await bench.lanes.close()

    assert runs.count(b"new") == runs.count(b"again") == 100
    assert len(turns) > 4


async def test_what_a_handler_takes_back_itself_does_not_run_and_no_lane_stumbles(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runs: list[bytes] = []
    taken: list[Delivery] = []

    async def handle(body: bytes) -> None:
        runs.append(body)
        if body == b"1":
            taken.extend(bench.lanes.take_back())

    bench = Bench(handle)
    bench.lanes.open()
    for first in (0, 10):
        bench.lanes.feed(in_rows([delivery(b"%d" % number) for number in range(first, first + 3)]))
    await bench.lanes.quiet()
    await bench.lanes.close()

    assert runs == numbers(3)
    assert [each.message.body for each in taken] == [b"10", b"11", b"12"]
    assert not caplog.records


def test_one_that_waits_keeps_nothing_of_the_others() -> None:
    async def handle(body: bytes) -> None:
        if body == b"1":
            await asyncio.sleep(0)

    (row,) = in_rows([delivery(body) for body in numbers(4)]).rows  # type: ignore[attr-defined]
    run_, context = Run(row), copy_context()
    work = run_.through(handle, context, float("inf"))
    context.run(work.send, None)
    assert (run_.begun, run_.deliveries) == (2, row.deliveries())
    run_.end_here()

    assert (run_.begun, run_.deliveries) == (2, [row.delivery(1)])
    assert run_.current is row.delivery(1)
    with pytest.raises(StopIteration):
        context.run(work.send, None)
