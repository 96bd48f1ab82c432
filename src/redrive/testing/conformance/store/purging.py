"""Purging: what is gone stays gone."""

from datetime import timedelta

import pytest

from redrive.core.errors import LetterNotFound
from redrive.core.query import Query
from redrive.core.stored import Collected
from redrive.testing.conformance.store.bench import (
    AT,
    DISCARDED,
    OPEN,
    REDRIVING,
    RESOLVED,
    Bench,
    Suite,
    an_act,
    an_outcome,
    letter,
)

LATER = AT + timedelta(days=90)


class Purging(Suite):
    """`purge`."""

    async def test_letters_that_failed_before_then_are_removed_up_to_the_limit(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c")
        await bench.dead("young", failed_at=LATER)

        assert await self._purge(bench, limit=2) == 2
        assert await bench.names() == ["young", "c"]
        assert await self._purge(bench) == 1
        assert await self._purge(bench) == 0
        assert (await bench.store.stats()).by_state == {"open": 1}
        assert ((row := await bench.store.incident("f1")).open, row.total) == (1, 1)
        with pytest.raises(LetterNotFound):
            await bench.store.get("a")

    async def test_only_what_is_asked_for_is_purged(self, bench: Bench) -> None:
        await bench.dead("a", "b")
        await bench.store.collect([], [an_outcome("a", 1)])

        assert await self._purge(bench, Query(states=(DISCARDED, REDRIVING))) == 0
        assert await self._purge(bench, Query(states=(REDRIVING,))) == 0
        assert await self._purge(bench, Query(states=(RESOLVED, DISCARDED))) == 1
        assert await bench.names() == ["b"]

    async def test_a_letter_that_is_out_is_not_purged(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.plan("a")
        await bench.claim()

        assert await self._purge(bench) == 0

    async def test_a_death_from_before_a_purge_is_not_counted_again(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.dead("a", generation=1)
        await self._purge(bench)
        await bench.dead("a", generation=3)
        await bench.dead("a", "a", generation=0)
        await bench.dead("a", generation=1)

        assert await bench.store.trends(since=AT - timedelta(hours=1), by="reason") == [
            (AT.replace(minute=0), {"attempts_exhausted": 3})
        ]

    async def test_many_letters_are_purged(self, bench: Bench) -> None:
        await bench.dead(*(f"l{number:04}" for number in range(2500)))
        await bench.store.tend()

        assert await self._purge(bench, limit=10_000) == 2500
        assert (await bench.store.stats()).total == 0
        assert await bench.names(Query(text="l0001")) == []

    async def test_a_purged_letter_told_again_stays_away(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.store.collect([], [an_outcome("a", 1)])
        await self._purge(bench)

        late = [letter("a"), letter("a", generation=1)]
        assert await bench.store.collect(late, [an_outcome("a", 1)]) == Collected(known=3)
        assert await bench.names() == []

    async def test_a_purged_letter_that_dies_in_a_later_generation_is_adopted(self, bench: Bench) -> None:
        await bench.dead("a")
        await self._purge(bench)
        await bench.dead("a", generation=1)

        assert await bench.state("a") == (OPEN, 1)

    async def _purge(self, bench: Bench, query: Query | None = None, *, limit: int = 100) -> int:
        act = an_act("letters.purge")
        return await bench.store.purge(query or Query(), before=LATER, limit=limit, act=act)
