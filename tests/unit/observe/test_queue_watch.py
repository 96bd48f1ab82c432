"""The rules about queues: when each is broken, when it holds again, and what finding out costs."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from redrive.core.alert_rules import AlertRules, Pace
from redrive.core.query import Query
from redrive.core.stored import Count, LetterRow, Page, Selected
from redrive.observe.alert_memo import AlertMemo
from redrive.observe.pages import Pages
from redrive.observe.queue_watch import QueueWatch
from redrive.stores.memory import MemoryStore
from redrive.stores.sql import SqlStore
from redrive.testing import ManualClock
from tests.unit.core.letters import a_letter

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NONE = {"growth": None, "threshold": None, "size": None, "age": None}


class Counted(MemoryStore):
    """A store whose letters must not be read."""

    async def find(
        self, query: Query, *, limit: int = 50, after: str | None = None, patience: timedelta | None = None
    ) -> Page[LetterRow]:
        raise AssertionError("letters were read")

    async def select(self, query: Query, *, limit: int, upto: str | None = None) -> Sequence[Selected]:
        raise AssertionError("letters were read")

    async def count(self, query: Query, *, cap: int = 10_000, patience: timedelta | None = None) -> Count:
        raise AssertionError("letters were counted")


class Bench:
    """A store, and the rules over it. The memo is written and read again after each measurement."""

    def __init__(self, **rules: Any) -> None:
        self.clock = ManualClock()
        self.store = Counted(clock=self.clock)
        self.watch = QueueWatch(self.store, AlertRules(**NONE | rules), pages=Pages("https://desk.example"))
        self.memo = AlertMemo()
        self.number = 0

    async def die(self, count: int, *, queue: str = "orders", failed_at: datetime | None = None) -> None:
        now = failed_at or self.clock.now()
        names = [f"{self.number + one}" for one in range(count)]
        self.number += count
        await self.store.collect([a_letter(letter_id=name, queue=queue, failed_at=now) for name in names])

    async def broken(self) -> list[str]:
        """The keys of what fires, sorted."""
        found = await self.watch.broken(self.memo, self.clock.now())
        self.memo.began = {alert.spell: alert.began_at for alert in found.values()}
        self.memo = AlertMemo.read(self.memo.written())
        self.said = [alert.headline for alert in found.values()]
        self.links = [alert.link for alert in found.values()]
        return sorted(found)


async def test_growth_is_more_letters_of_one_queue_than_the_limit_within_the_window() -> None:
    bench = Bench(growth=Pace(10, 5 * MINUTE))
    await bench.die(1000)
    assert await bench.broken() == []  # what was there before anybody counted has not grown
    await bench.die(10)
    await bench.die(10, queue="mail")
    bench.clock.advance(MINUTE)
    assert await bench.broken() == []

    await bench.die(1)

    assert await bench.broken() == ["growth:orders"]
    assert bench.said == ["orders: 11 letters died within 5m, the limit is 10"]
    assert bench.links == ["https://desk.example/letters?queue=orders"]


async def test_it_ends_when_no_more_than_half_of_the_limit_is_left_in_the_window() -> None:
    bench = Bench(growth=Pace(10, 5 * MINUTE))
    await bench.broken()
    await bench.die(11)
    seen = []
    for minute in range(8):
        seen.append(await bench.broken())
        bench.clock.advance(MINUTE)
        if minute == 3:
            await bench.die(6)

    assert seen[:4] == [["growth:orders"]] * 4
    assert seen[5] == seen[6] == ["growth:orders"]  # six are left: above half
    for _ in range(6):
        bench.clock.advance(MINUTE)
        last = await bench.broken()
    assert last == []


async def test_a_window_slides_over_the_hour() -> None:
    bench = Bench(threshold=Pace(100, HOUR))
    bench.clock.advance(50 * MINUTE)
    await bench.broken()
    for _ in range(4):
        await bench.die(26)
        bench.clock.advance(5 * MINUTE)
        last = await bench.broken()

    assert last == ["threshold:orders"]
    assert bench.said == ["orders: 104 letters died within 1h, the limit is 100"]


async def test_letters_that_are_told_of_late_count_when_they_come() -> None:
    bench = Bench(growth=Pace(10, 5 * MINUTE))
    bench.clock.advance(HOUR - bench.clock.now().minute * MINUTE)
    await bench.broken()
    bench.clock.advance(MINUTE)

    await bench.die(11, failed_at=bench.clock.now() - 3 * MINUTE)  # in the hour before

    assert await bench.broken() == ["growth:orders"]


async def test_after_a_time_in_which_nobody_counted_it_is_counted_anew() -> None:
    bench = Bench(growth=Pace(10, 5 * MINUTE))
    await bench.broken()
    bench.clock.advance(7 * MINUTE)
    await bench.die(50)
    assert await bench.broken() == []
    await bench.die(11)

    assert await bench.broken() == ["growth:orders"]


async def test_a_clock_that_is_set_back_is_no_growth() -> None:
    bench = Bench(growth=Pace(10, 5 * MINUTE))
    await bench.broken()
    later = bench.clock.now() + 3 * HOUR
    await bench.watch.broken(bench.memo, later)
    await bench.die(50)

    assert await bench.broken() == []
    assert all(sample.at < later for sample in bench.memo.samples["growth"])


async def test_samples_do_not_pile_up() -> None:
    bench = Bench(growth=Pace(10, 5 * MINUTE), threshold=Pace(100, HOUR))
    for _ in range(300):
        await bench.die(1)
        await bench.broken()
        bench.clock.advance(MINUTE / 2)

    assert all(len(samples) <= 12 for samples in bench.memo.samples.values())


async def test_size_is_open_and_parked_letters_of_one_queue() -> None:
    bench = Bench(size=10)
    await bench.die(10)
    await bench.die(5, queue="mail")
    assert await bench.broken() == []
    await bench.die(1)

    assert await bench.broken() == ["size:orders"]
    assert bench.said == ["orders: 11 letters are open, the limit is 10"]


async def test_age_is_that_of_the_oldest_open_letter_of_each_queue() -> None:
    bench = Bench(age=24 * HOUR)
    await bench.die(2)
    bench.clock.advance(12 * HOUR)
    await bench.die(1, queue="mail")
    assert await bench.broken() == []
    bench.clock.advance(12 * HOUR)
    assert await bench.broken() == []
    bench.clock.advance(MINUTE)

    assert await bench.broken() == ["age:orders"]
    assert bench.said == ["orders: 2 letters are open, and the oldest has been for more than 1d"]


async def test_rules_that_are_off_ask_nothing() -> None:
    bench = Bench()
    await bench.die(100)
    bench.clock.advance(100 * 24 * HOUR)

    assert await bench.broken() == []
    assert bench.memo.samples == {}


async def test_the_same_holds_on_a_database(tmp_path: Path) -> None:
    bench = Bench(growth=Pace(10, 5 * MINUTE), threshold=Pace(10, HOUR), size=10, age=HOUR)
    store = SqlStore(tmp_path / "letters.db", clock=bench.clock)
    bench.watch = QueueWatch(store, AlertRules(growth=Pace(10, 5 * MINUTE), size=10, age=HOUR), pages=Pages())
    try:
        await bench.broken()
        bench.store = store  # type: ignore[assignment] # a store is a store
        await bench.die(11)
        assert await bench.broken() == ["growth:orders", "size:orders"]
        bench.clock.advance(2 * HOUR)
        assert await bench.broken() == ["age:orders", "size:orders"]
    finally:
        await store.aclose()


@pytest.mark.parametrize("text", ["", "10", "10 in", "in 5m", "0 in 5m", "10 in 0s", "10 in 59s", "-1 in 5m", "10in5m"])
def test_a_pace_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Pace.of(text)
