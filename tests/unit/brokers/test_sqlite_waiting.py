"""A fetch that waits: for what is published, and for what falls due."""

from datetime import timedelta
from pathlib import Path

import pytest

from redrive.brokers.sqlite import SqliteBroker, subscription
from redrive.core.message import Message
from redrive.core.ports import Options
from redrive.testing.clock import START, ManualClock

SHORT = timedelta(milliseconds=50)
LONG = timedelta(seconds=1)


class Leaping(ManualClock):
    """Whoever sleeps moves the clock."""

    async def sleep(self, delay: timedelta) -> None:
        self.advance(delay)
        await super().sleep(timedelta(0))


async def test_what_falls_due_between_a_look_and_the_wait_is_fetched_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Leaping()
    broker = SqliteBroker(tmp_path / "shop.db", clock=clock, reserve=0)
    worker = await broker.subscribe("orders", group="shop", options=Options(owner="one"))
    await broker.publish("orders", [Message(id="", queue="orders", body=b"1")], delay=SHORT)

    def take_a_while(*_: object) -> bool:
        clock.advance(SHORT)
        return False

    monkeypatch.setattr(subscription, "anything_ended", take_a_while)
    taken = await worker.fetch(1, wait=LONG)
    await broker.aclose()

    assert [delivery.message.body for delivery in taken] == [b"1"]
    assert clock.now() == START + SHORT


async def test_a_pause_is_waited_out_although_something_is_due(tmp_path: Path) -> None:
    clock = Leaping()
    broker = SqliteBroker(tmp_path / "shop.db", clock=clock, reserve=0)
    worker = await broker.subscribe("orders", group="shop", options=Options(owner="one"))
    await broker.publish("orders", [Message(id="", queue="orders", body=b"1")], delay=SHORT)
    await broker.pause("orders", group="shop", why="by hand")
    clock.advance(SHORT)

    assert list(await worker.fetch(1, wait=LONG)) == []
    assert clock.now() == START + SHORT + LONG
    await broker.aclose()
