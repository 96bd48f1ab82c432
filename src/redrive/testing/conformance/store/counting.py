"""Counts: exact, whatever has moved."""

from datetime import datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.core.reason import Reason
from redrive.core.stored import Count, Dimension, Stats
from redrive.testing.conformance.store.bench import (
    AT,
    DISCARDED,
    OPEN,
    PARKED,
    Bench,
    Suite,
    an_act,
    an_outcome,
    letter,
)

HOUR = AT.replace(minute=0)
ORDERS = [*permutations(range(3))]


class Counting(Suite):
    """`stats`, `count` and `trends`."""

    async def test_an_empty_store_counts_nothing(self, bench: Bench) -> None:
        empty = Stats(total=0, by_state={}, by_error_type={}, by_reason={}, by_queue={}, oldest_at=None, newest_at=None)

        assert await bench.store.stats() == empty
        assert await bench.store.count(Query()) == Count(0)

    async def test_stats_follow_every_move(self, bench: Bench) -> None:
        later = AT + timedelta(hours=2)
        await bench.dead("a", "b", "c", "d")
        await bench.dead("e", queue="mail", error_type="KeyError", reason=Reason.INVALID, failed_at=later)
        await bench.store.collect([letter("a", generation=1, error_type="KeyError")], [an_outcome("b", 1)])
        await bench.store.discard({"c": 1}, act=an_act("letters.discard"))
        await bench.plan("d", redrive_id="r2")
        await bench.claim("r2")

        assert await bench.store.stats() == Stats(
            total=5,
            by_state={"open": 2, "resolved": 1, "discarded": 1, "redriving": 1},
            by_error_type={"ValueError": 3, "KeyError": 2},
            by_reason={"attempts_exhausted": 4, "invalid": 1},
            by_queue={"orders": 4, "mail": 1},
            oldest_at=AT,
            newest_at=later,
        )
        mail = await bench.store.stats("mail")
        assert (mail.total, mail.by_state, mail.oldest_at) == (1, {"open": 1}, later)
        assert (await bench.store.stats("nowhere")).total == 0

    async def test_stats_are_over_the_states_that_are_asked_for(self, bench: Bench) -> None:
        early, late = AT - timedelta(hours=1), AT + timedelta(hours=1)
        await bench.dead("a")
        await bench.dead("b", generation=5, failed_at=AT, error_type="KeyError")
        await bench.dead("c", queue="mail", failed_at=early)
        await bench.dead("d", failed_at=late)
        await bench.store.discard({"c": 1, "d": 1}, act=an_act("letters.discard"))

        assert await bench.store.stats(states=(OPEN, PARKED)) == Stats(
            total=2,
            by_state={"open": 1, "parked": 1},
            by_error_type={"ValueError": 1, "KeyError": 1},
            by_reason={"attempts_exhausted": 2},
            by_queue={"orders": 2},
            oldest_at=AT,
            newest_at=AT,
        )
        gone = await bench.store.stats("orders", states=[DISCARDED])
        assert (gone.total, gone.oldest_at, gone.newest_at) == (1, late, late)
        assert (await bench.store.stats(states=[DISCARDED])).oldest_at == early
        assert (await bench.store.stats("mail", states=[OPEN])).total == 0
        assert await bench.store.stats(states=tuple(LetterState)) == await bench.store.stats()

    async def test_counts_are_exact_where_a_tally_has_them(self, bench: Bench) -> None:
        await bench.dead(*(f"l{number}" for number in range(20)))
        await bench.dead("other", queue="mail")

        assert await bench.store.count(Query(queue="orders", states=(OPEN,))) == Count(20)
        assert await bench.store.count(Query(queue="orders", states=(OPEN, PARKED))) == Count(20)
        assert await bench.store.count(Query(error_type="ValueError")) == Count(21)

    async def test_other_counts_are_capped_and_say_so(self, bench: Bench) -> None:
        await bench.dead(*(f"l{number}" for number in range(20)), user_id="u1")

        assert await bench.store.count(Query(user_id="u1"), cap=15) == Count(15, capped=True)
        assert await bench.store.count(Query(user_id="u1"), cap=20) == Count(20)

    async def test_letters_of_a_time_are_counted(self, bench: Bench) -> None:
        for later, names in enumerate(("abc", "def", "gh")):
            await bench.dead(*names, failed_at=AT + timedelta(hours=later))
        await bench.dead("i", "j", queue="mail", failed_at=AT + timedelta(hours=1))
        await bench.store.discard({"d": 1, "i": 1}, act=an_act("letters.discard"))
        hour: dict[str, Any] = {"from_at": AT + timedelta(hours=1), "to_at": AT + timedelta(hours=2)}

        assert await bench.store.count(Query(**hour)) == Count(5)
        assert await bench.store.count(Query(**hour), cap=4) == Count(4, capped=True)
        assert await bench.store.count(Query(**hour, queue="orders")) == Count(3)
        assert await bench.store.count(Query(**hour, queue="nowhere")) == Count(0)
        assert await bench.store.count(Query(**hour, states=(OPEN, PARKED))) == Count(3)
        assert await bench.store.count(Query(**hour, states=(DISCARDED,), queue="mail")) == Count(1)
        assert await bench.store.count(Query(from_at=hour["from_at"])) == Count(7)
        assert await bench.store.count(Query(to_at=hour["to_at"])) == Count(8)
        assert await bench.names(Query(**hour), limit=2) == ["j", "i", "f", "e", "d"]
        assert await bench.names(Query(**hour, error_type="ValueError", states=(OPEN,)), limit=2) == ["j", "f", "e"]

    async def test_deaths_are_counted_by_hour_and_dimension(self, bench: Bench) -> None:
        await bench.dead("a", "b")
        await bench.dead("c", reason=Reason.INVALID, queue="mail", error_type="KeyError", error_code="no_card")
        await bench.dead("d", failed_at=AT + timedelta(hours=3))
        await bench.dead("a", "b", generation=0)
        await bench.dead("a", generation=1, reason=Reason.REJECTED)

        later = HOUR + timedelta(hours=3)
        expected: dict[Dimension, list[tuple[datetime, dict[str, int]]]] = {
            "reason": [
                (HOUR, {"attempts_exhausted": 2, "invalid": 1, "rejected": 1}),
                (later, {"attempts_exhausted": 1}),
            ],
            "error_type": [(HOUR, {"ValueError": 3, "KeyError": 1}), (later, {"ValueError": 1})],
            "error_code": [(HOUR, {"": 3, "no_card": 1}), (later, {"": 1})],
            "queue": [(HOUR, {"orders": 3, "mail": 1}), (later, {"orders": 1})],
        }
        for by, hours in expected.items():
            assert await bench.store.trends(since=HOUR, by=by) == hours
            assert await bench.store.trends(since=HOUR + timedelta(hours=1), by=by) == hours[1:]
            assert await bench.store.trends(since=later, by=by) == hours[1:]
            assert await bench.store.trends(since=HOUR, until=later, by=by) == hours[:1]
            assert await bench.store.trends(since=HOUR, until=later + timedelta(hours=1), by=by) == hours
        assert await bench.store.trends(since=HOUR, queue="mail", by="reason") == [(HOUR, {"invalid": 1})]
        assert await bench.store.trends(since=HOUR, queue="mail", by="error_code") == [(HOUR, {"no_card": 1})]
        assert await bench.store.trends(since=HOUR, queue="mail", by="queue") == [(HOUR, {"mail": 1})]
        assert await bench.store.trends(since=HOUR, queue="nowhere", by="queue") == []

    @pytest.mark.parametrize("at_once", [1, 4, 6], ids=["one by one", "by fours", "in one batch"])
    @pytest.mark.parametrize("order", ORDERS, ids=lambda order: "".join(map(str, order)))
    async def test_each_death_counts_once_in_any_order_and_told_again(
        self, bench: Bench, order: tuple[int, ...], at_once: int
    ) -> None:
        next_hour = HOUR + timedelta(hours=1)
        deaths = [
            letter("a", attempts=()),
            letter("a", generation=1, fingerprint="f2", reason=Reason.REJECTED, error_type="KeyError", error_code="c1"),
            letter("a", generation=2, failed_at=next_hour),
        ]
        told = [deaths[number] for number in order] * 2
        for start in range(0, len(told), at_once):
            await bench.store.collect(told[start : start + at_once])

        expected: dict[Dimension, list[dict[str, int]]] = {
            "reason": [{"attempts_exhausted": 1, "rejected": 1}, {"attempts_exhausted": 1}],
            "error_type": [{"ValueError": 1, "KeyError": 1}, {"ValueError": 1}],
            "error_code": [{"": 1, "c1": 1}, {"": 1}],
            "queue": [{"orders": 2}, {"orders": 1}],
        }
        for by, (one, other) in expected.items():
            assert await bench.store.trends(since=HOUR, by=by) == [(HOUR, one), (next_hour, other)]
        assert (await bench.store.incident("f1")).hours == ((HOUR, 1), (next_hour, 1))
        assert (await bench.store.incident("f2")).hours == ((HOUR, 1),)
