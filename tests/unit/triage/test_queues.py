import asyncio
from datetime import timedelta
from typing import Any

import pytest

from redrive.brokers.memory import MemoryBroker
from redrive.core.errors import BrokerUnavailable, ConfigError, QueueNotFound
from redrive.core.message import Message
from redrive.core.place import COLLECTORS
from redrive.core.ports import Depth, Options
from redrive.triage import queues
from redrive.triage.queues import QueueRow
from tests.unit.core.letters import a_letter
from tests.unit.triage.bench import Bench


class Away(MemoryBroker):
    """A broker that cannot be reached."""

    async def queues(self) -> Any:
        raise BrokerUnavailable("redis://:secret@10.0.0.1:6379 does not answer")


class Silent(MemoryBroker):
    """A broker that takes every question and answers none."""

    async def depth(self, queue: str, *, group: str) -> Any:
        await asyncio.Event().wait()


async def consume(bench: Bench, queue: str, group: str, *, version: str = "", paused: str | None = None) -> None:
    options = Options(owner=f"{group}-{version}", version=version)
    subscription = await bench.broker.subscribe(queue, group=group, options=options)
    await subscription.heartbeat(paused=paused)


async def publish(bench: Bench, queue: str, count: int) -> None:
    messages = [Message(id="", queue=queue, body=b"{}", published_at=bench.clock.now()) for _ in range(count)]
    await bench.broker.publish(queue, messages)


async def rows(bench: Bench, **brokers: Any) -> list[QueueRow]:
    return await queues.overview(brokers or bench.brokers, {}, clock=bench.clock)


async def test_the_overview_says_how_much_waits_how_long_and_who_works_on_it() -> None:
    bench = Bench()
    await consume(bench, "orders", "shop", version="4f2c")
    await consume(bench, "orders", "shop", version="5a00")
    await publish(bench, "orders", 3)
    bench.clock.advance("20s")

    (row,) = await rows(bench)

    assert (row.broker, row.queue, row.group, row.lag) == ("memory", "orders", "shop", 3)
    assert row.oldest_age == timedelta(seconds=20)
    assert row.versions == ["4f2c", "5a00"]
    assert (row.paused, row.trouble) == (None, "")


async def test_a_broker_that_is_away_is_one_row_that_says_so_without_its_password() -> None:
    bench = Bench()
    await consume(bench, "orders", "shop")

    away, here = await rows(bench, away=Away(name="away", clock=bench.clock), memory=bench.broker)

    assert (here.queue, here.trouble) == ("orders", "")
    assert (away.broker, away.queue, away.lag) == ("away", "", None)
    assert "does not answer" in away.trouble
    assert "secret" not in away.trouble


async def test_a_broker_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "PATIENCE", timedelta(milliseconds=10))
    bench = Bench()
    bench.broker = Silent(clock=bench.clock)
    for queue in ("a", "b"):
        await consume(bench, queue, "shop")

    found = await rows(bench, memory=bench.broker)

    assert [(row.queue, row.trouble) for row in found] == [
        ("a", "no answer within 0.01 s"),
        ("b", "no answer within 0.01 s"),
    ]


async def test_what_is_kept_beside_a_queue_is_not_shown() -> None:
    bench = Bench()
    for queue in ("orders", "orders.dlq", "orders.outcomes", "alone.dlq"):
        await consume(bench, queue, "shop")

    assert [row.queue for row in await rows(bench)] == ["alone.dlq", "orders"]
    assert len(await queues.lanes_of(bench.broker, everything=True)) == 4


async def test_what_collectors_read_is_not_shown_whatever_it_is_called() -> None:
    bench = Bench()
    await consume(bench, "orders", "shop")
    for queue in ("old.dead", "welcome.outcomes", "welcome.dlq"):
        await consume(bench, queue, COLLECTORS)

    assert [row.queue for row in await rows(bench)] == ["orders"]
    assert len(await queues.lanes_of(bench.broker, everything=True)) == 4


async def test_a_queue_that_is_not_there_yet_shows_what_its_dlq_holds() -> None:
    bench = Bench()
    await bench.broker.dead_letters("later").send(a_letter(b"1"))

    (row,) = await queues.overview(bench.brokers, {"memory": ("later",)}, clock=bench.clock)

    assert (row.queue, row.group, row.depth, row.trouble) == ("later", "", Depth(dead=1), "")


async def test_only_the_queues_that_are_looked_after_are_shown_also_one_nobody_has_begun() -> None:
    bench = Bench()
    for queue in ("orders", "mails"):
        await consume(bench, queue, "shop")

    found = await queues.overview(bench.brokers, {"memory": ("orders", "later")}, clock=bench.clock)

    assert [(row.queue, bool(row.trouble)) for row in found] == [("later", False), ("orders", False)]


async def test_workers_that_hold_back_by_themselves_say_why() -> None:
    bench = Bench()
    await consume(bench, "orders", "shop", version="1", paused="the bank is down")
    await consume(bench, "orders", "shop", version="2")

    assert [row.paused for row in await rows(bench)] == ["the bank is down (1 of 2 workers)"]


async def test_pause_and_resume_are_obeyed_and_on_record() -> None:
    bench = Bench()
    await consume(bench, "orders", "shop")

    paused = await queues.pause(bench.desk, bench.broker, "orders", why="the bank is down")
    resumed = await queues.resume(bench.desk, bench.broker, "orders", group="shop")

    assert (paused.paused, resumed.paused) == ("the bank is down", None)
    second, first = (await bench.store.records()).rows
    assert (first.who, first.verb, first.detail) == ("sam", "queues.pause", {"why": "the bank is down"})
    assert (second.verb, second.selection) == ("queues.resume", "broker=memory, queue=orders, group=shop")


async def test_a_pause_without_a_reason_says_who_it_was() -> None:
    bench = Bench()
    await consume(bench, "orders", "shop")

    assert (await queues.pause(bench.desk, bench.broker, "orders")).paused == "paused by sam"


async def test_release_is_on_record_too() -> None:
    bench = Bench()
    await consume(bench, "orders", "shop")

    assert await queues.release(bench.desk, bench.broker, "orders") == 0
    assert [one.verb for one in (await bench.store.records()).rows] == ["queues.release"]


async def test_a_group_must_be_named_where_there_are_several_and_must_exist() -> None:
    bench = Bench()
    for group in ("shop", "audit"):
        await consume(bench, "orders", group)

    with pytest.raises(ConfigError, match="several groups, say which: audit, shop"):
        await queues.pause(bench.desk, bench.broker, "orders")
    with pytest.raises(QueueNotFound, match="no group 'shoop'; there are audit, shop"):
        await queues.pause(bench.desk, bench.broker, "orders", group="shoop")
    with pytest.raises(QueueNotFound, match="no group consumes"):
        await queues.resume(bench.desk, bench.broker, "nowhere")
    assert (await bench.store.records()).rows == []
