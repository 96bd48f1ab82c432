"""What a worker tells of its work with each settle call and each heartbeat."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from redrive.app import App
from redrive.brokers.memory import MemoryBroker
from redrive.clock import SystemClock
from redrive.core.delivery import Delivery
from redrive.core.errors import BrokerUnavailable
from redrive.core.event import BatchSettled, BrokerFaulted, Event, LetterRefused, WorkerBeat
from redrive.core.message import Message
from redrive.core.outcome import GiveUp, Settled, Settlement, SettleStatus
from redrive.core.ports import Options, Subscription
from redrive.testing import run
from redrive.worker.account import failure_reason


class Heard(list[Event]):
    """Every event of an app, and a wait for so many settled messages."""

    def __init__(self, app: App) -> None:
        super().__init__()
        self._more = asyncio.Event()
        app.bus.subscribe(self._hear)

    def _hear(self, event: Event) -> None:
        self.append(event)
        self._more.set()

    @property
    def settled(self) -> list[BatchSettled]:
        return [event for event in self if isinstance(event, BatchSettled)]

    async def ended(self, count: int) -> None:
        while sum(event.acked + event.dead for event in self.settled) < count:
            self._more.clear()
            await self._more.wait()


def failing_app(*, fails: int) -> App:
    app = App("memory://", name="shop")

    @app.consumer("orders", retry=[1, 2, 4], breaker=None)
    async def handle(delivery: Delivery) -> None:
        if delivery.attempt <= fails:
            raise ValueError("not yet")

    return app


async def test_a_success_is_told_with_the_failures_before_it() -> None:
    async with run(failing_app(fails=2)) as shop:
        await shop.publish("orders", b"1")
        await shop.publish("orders", b"2")
        await shop.drain()
        after: Counter[int] = Counter()
        for event in shop.events:
            if isinstance(event, BatchSettled):
                after.update(event.after_failures)

    assert after == {2: 2}


async def test_a_plain_success_is_told_without_a_word_about_failures_or_lateness() -> None:
    app = failing_app(fails=0)
    heard = Heard(app)
    async with app.worker():
        await app.publish("orders", b"1")
        await heard.ended(1)

    (event,) = heard.settled
    assert (event.acked, len(event.after_failures), len(event.late_by)) == (1, 0, 0)


@pytest.mark.parametrize("waits", [False, True])
async def test_every_run_of_the_handler_is_timed_once(waits: bool) -> None:  # noqa: FBT001 - a parameter
    app = App("memory://", name="shop")
    heard = Heard(app)

    @app.consumer("orders")
    async def handle(body: bytes) -> None:
        if waits and int(body) % 3 == 0:
            await asyncio.sleep(0)

    async with app.worker():
        await app.broker.publish("orders", [Message("", "orders", b"%d" % number) for number in range(500)])
        await heard.ended(500)

    runs = [run for event in heard.settled for run in event.runs]
    assert sum(times for _, times in runs) == 500
    assert all(seconds >= 0 for seconds, _ in runs)


async def test_the_time_of_a_handler_that_waits_is_its_own() -> None:
    app = App("memory://", name="shop")
    heard = Heard(app)
    began, go_on = asyncio.Event(), asyncio.Event()

    @app.consumer("orders")
    async def handle(body: bytes) -> None:
        if body == b"slow":
            began.set()
            await go_on.wait()

    loop = asyncio.get_running_loop()
    async with app.worker():
        await app.publish("orders", b"slow")
        await began.wait()
        since = loop.time()
        await app.publish("orders", b"quick")
        await heard.ended(1)
        waited = loop.time() - since
        go_on.set()
        await heard.ended(2)

    slowest = max(run for event in heard.settled for run in event.runs)
    assert slowest[0] >= waited
    assert slowest[1] == 1


async def test_a_batch_is_one_run() -> None:
    app = App("memory://", name="shop")
    heard = Heard(app)
    sizes: list[int] = []

    @app.batch_consumer("orders", size=10)
    async def handle(bodies: list[bytes]) -> None:
        sizes.append(len(bodies))

    async with app.worker():
        await app.broker.publish("orders", [Message("", "orders", b"") for _ in range(25)])
        await heard.ended(25)

    assert sum(times for event in heard.settled for _, times in event.runs) == len(sizes)


async def test_a_retry_is_told_with_its_lateness() -> None:
    async with run(failing_app(fails=1)) as shop:
        await shop.publish("orders", b"1")
        await shop.drain()
        late = [seconds for event in shop.events if isinstance(event, BatchSettled) for seconds in event.late_by]

    assert len(late) == 1
    assert 0 <= late[0] < 1


async def test_a_heartbeat_tells_what_is_in_hand() -> None:
    app = App("memory://", name="shop")
    heard = Heard(app)
    began, go_on = asyncio.Event(), asyncio.Event()

    @app.consumer("orders")
    async def handle(_: bytes) -> None:
        began.set()
        await go_on.wait()

    async with app.worker() as crew:
        await app.publish("orders", b"1")
        await began.wait()
        crew.workers[0].suspects(3)
        go_on.set()

    beats = [event for event in heard if isinstance(event, WorkerBeat)]
    assert (beats[-1].broker, beats[-1].queue, beats[-1].group) == ("memory", "orders", "shop")
    assert (beats[-1].in_flight, beats[-1].suspects) == (1, 3)


class Faulty(MemoryBroker):
    """A broker whose settle calls fail, refuse letters, or do all that they were asked to and fail then, at first."""

    def __init__(self, *, refuses: str = "", unheard: bool = False) -> None:
        super().__init__(clock=SystemClock())
        self._refuses = refuses
        self._unheard = unheard

    async def subscribe(self, queue: str, *, group: str, options: Options) -> Subscription:
        found = await super().subscribe(queue, group=group, options=options)
        settle, refuses, first = found.settle, self._refuses, [True]

        async def faulty(items: Sequence[Settlement | Delivery]) -> Sequence[Settled]:
            if first and first.pop():
                if refuses:
                    return [Settled(SettleStatus.REFUSED, refuses) for _ in items]
                if self._unheard:
                    await settle(items)
                raise BrokerUnavailable("away")
            return await settle(items)

        found.settle = faulty  # type: ignore[method-assign]
        return found


def giving_up(broker: MemoryBroker) -> App:
    app = App(broker, name="shop")

    @app.consumer("orders")
    async def handle(_: bytes) -> None:
        raise GiveUp("no", code="E7")

    return app


async def test_a_settle_call_that_fails_tells_which_letters_it_would_have_written() -> None:
    app = giving_up(Faulty())
    heard = Heard(app)
    async with app.worker():
        await app.publish("orders", b"1")
        await heard.ended(1)

    (fault,) = [event for event in heard if isinstance(event, BrokerFaulted)]
    assert (fault.call, fault.error_type) == ("settle", "BrokerUnavailable")
    assert [(letter.error_code, letter.reason.value) for letter in fault.letters] == [("E7", "rejected")]


async def test_letters_that_were_written_unheard_are_told_once_all_the_same() -> None:
    broker = Faulty(unheard=True)
    app = giving_up(broker)
    heard = Heard(app)
    async with app.worker():
        await app.publish("orders", b"1")
        await heard.ended(1)

    assert [event.dead for event in heard.settled] == [1]
    assert [letter.error_code for event in heard.settled for letter in event.letters] == ["E7"]
    assert await broker.dead_letters("orders").length() == 1


async def test_a_refused_letter_is_told_with_what_it_died_of() -> None:
    app = giving_up(Faulty(refuses="orders.dlq: 700 of 512 bytes"))
    heard = Heard(app)
    async with app.worker():
        await app.publish("orders", b"1")
        await heard.ended(1)

    (refused,) = [event for event in heard if isinstance(event, LetterRefused)]
    assert refused.letter is not None
    assert (refused.letter.error_code, refused.failure_reason) == ("E7", "orders.dlq: # of # bytes")


@pytest.mark.parametrize(
    ("why", "name"),
    [
        ("OverflowError: too large to convert", "OverflowError"),
        ("orders:dlq holds a string, not a stream", "orders:dlq holds a string, not a stream"),
        ("9" * 1000, "#"),
        ("", ""),
        ("x" * 1000, "x" * 80),
    ],
)
def test_refusals_that_are_alike_have_one_name(why: str, name: str) -> None:
    assert failure_reason(why) == name
