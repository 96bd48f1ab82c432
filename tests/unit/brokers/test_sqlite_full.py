"""A full disk: nothing is lost, nothing new is taken on, and what is in hand can still be settled."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from redrive.brokers.sqlite import SqliteBroker, space
from redrive.brokers.sqlite.transaction import Transaction
from redrive.core.duration import NOW
from redrive.core.errors import BrokerUnavailable
from redrive.core.event import BrokerFaulted, Event
from redrive.core.message import Message
from redrive.core.outcome import Settlement
from redrive.core.ports import Options
from redrive.testing.clock import ManualClock
from redrive.testing.conformance.bench import Bench

LARGE = bytes(100_000)


class Heard:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The room on the disk, as the broker is told; looked at anew each time."""
    room = {"bytes": 10 * space.RESERVE}
    monkeypatch.setattr(space, "free_bytes", lambda _: room["bytes"])
    monkeypatch.setattr(space, "LOOKED_AT_FOR", -1)
    return room


@pytest.fixture
async def guarded(file: Path, clock: ManualClock, heard: Heard) -> AsyncIterator[SqliteBroker]:
    broker = SqliteBroker(file, clock=clock, sink=heard)
    yield broker
    await broker.aclose()


async def fill(broker: SqliteBroker) -> None:
    """From now on the file cannot grow, as on a disk that is full."""

    def limit(transaction: Transaction) -> None:
        (pages,) = transaction.execute("PRAGMA page_count").fetchone()
        (free,) = transaction.execute("PRAGMA freelist_count").fetchone()
        assert not free
        transaction.execute(f"PRAGMA max_page_count = {pages}").fetchall()

    await broker._writer.read(limit)  # noqa: SLF001 - the limit belongs to the connection


async def test_a_publish_that_does_not_fit_is_refused_as_a_whole(bench: Bench, broker: SqliteBroker) -> None:
    await bench.worker()
    await bench.publish(b"1")
    await fill(broker)
    with pytest.raises(BrokerUnavailable, match="full"):
        await bench.publish(b"2", LARGE)

    assert await bench.counts() == {"waiting": 1}


async def test_acks_go_through_while_everything_that_needs_room_is_refused(bench: Bench, broker: SqliteBroker) -> None:
    worker = await bench.worker()
    await bench.publish(*(LARGE for _ in range(4)))
    acked, dead, also_acked, failed = await bench.take(worker, 4)
    await fill(broker)
    items = [Settlement(acked), bench.give_up(dead, worker), Settlement(also_acked), bench.retry(failed)]
    answers = await worker.settle(items)

    assert [answer.status for answer in answers] == ["done", "refused", "done", "refused"]
    assert "full" in answers[1].why
    assert await bench.counts() == {"in_flight": 2}


async def test_what_was_refused_can_be_settled_once_there_is_room(bench: Bench, broker: SqliteBroker) -> None:
    worker = await bench.worker()
    await bench.publish(LARGE, LARGE)
    failed, acked = await bench.take(worker, 2)
    await fill(broker)
    (refused, _) = await worker.settle([bench.retry(failed), Settlement(acked)])  # the ack has made room
    answers = await worker.settle([bench.retry(failed)])

    assert (refused.status, [answer.status for answer in answers]) == ("refused", ["done"])
    assert await bench.counts() == {"waiting": 1}


async def test_a_settle_of_which_nothing_fits_raises_and_does_nothing(bench: Bench, broker: SqliteBroker) -> None:
    worker = await bench.worker()
    await bench.publish(LARGE)
    (failed,) = await bench.take(worker, 1)
    await fill(broker)
    with pytest.raises(BrokerUnavailable, match="full"):
        await worker.settle([bench.retry(failed)])

    assert await bench.counts() == {"in_flight": 1}


async def test_a_letter_fits_into_the_room_that_its_message_leaves(bench: Bench, broker: SqliteBroker) -> None:
    worker = await bench.worker()
    await bench.publish(LARGE)
    (dead,) = await bench.take(worker, 1)
    await fill(broker)
    answers = await worker.settle([bench.give_up(dead, worker)])

    assert [answer.status for answer in answers] == ["done"]
    assert await bench.counts() == {"dead": 1}


async def test_below_the_reserve_nothing_is_published_or_handed_out_but_everything_settled(
    guarded: SqliteBroker, free: dict[str, int], heard: Heard
) -> None:
    message = Message("", "orders", b"1")
    worker = await guarded.subscribe("orders", group="shop", options=Options(owner="w"))
    await guarded.publish("orders", [message, message])
    (delivery,) = await worker.fetch(1, wait=NOW)
    free["bytes"] = space.RESERVE - 1
    with pytest.raises(BrokerUnavailable, match="63 MiB are free"):
        await guarded.publish("orders", [message])
    with pytest.raises(BrokerUnavailable, match="handed out"):
        await worker.fetch(1, wait=timedelta(minutes=1))
    answers = await worker.settle([Settlement(delivery)])

    assert [answer.status for answer in answers] == ["done"]
    assert [(type(event), event.queue) for event in heard.events] == [(BrokerFaulted, "orders")]


async def test_when_there_is_room_again_everything_goes_on_and_the_next_time_is_told_again(
    guarded: SqliteBroker, free: dict[str, int], heard: Heard
) -> None:
    message = Message("", "orders", b"1")
    for _ in range(2):
        free["bytes"] = 0
        with pytest.raises(BrokerUnavailable):
            await guarded.publish("orders", [message])
        free["bytes"] = 10 * space.RESERVE
        await guarded.publish("orders", [message])

    assert len(heard.events) == 2


async def test_a_publish_that_would_reach_into_the_reserve_is_refused(
    guarded: SqliteBroker, free: dict[str, int]
) -> None:
    free["bytes"] = space.RESERVE + 1000
    await guarded.publish("orders", [Message("", "orders", bytes(900))])
    with pytest.raises(BrokerUnavailable):
        await guarded.publish("orders", [Message("", "orders", bytes(1100))])
