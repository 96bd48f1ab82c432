"""Deaths and outcomes of redriven messages, in any order."""

from itertools import permutations

import pytest

from redrive.core.attempt import KEPT_IN_ALL, Attempt
from redrive.core.query import Query
from redrive.core.stored import Collected
from redrive.testing.conformance.store.bench import (
    AT,
    DISCARDED,
    OPEN,
    PARKED,
    REDRIVING,
    RESOLVED,
    Bench,
    Suite,
    an_act,
    an_outcome,
    letter,
)

ORDERS = [*permutations(range(4))]


class Relapses(Suite):
    """`core.life`, as a store keeps it."""

    async def test_a_success_resolves_its_letter(self, bench: Bench) -> None:
        await bench.dead("a")
        assert await bench.store.collect([], [an_outcome("a", 1)]) == Collected(resolved=1)
        assert await bench.state("a") == (RESOLVED, 1)

        assert await bench.store.collect([], [an_outcome("a", 1)]) == Collected(known=1)
        assert (await bench.store.get("a")).outcomes == (an_outcome("a", 1),)

    async def test_an_outcome_that_comes_before_its_letter_is_kept_for_it(self, bench: Bench) -> None:
        assert await bench.store.collect([], [an_outcome("a", 1)]) == Collected(known=1)
        assert await bench.names() == []

        await bench.dead("a")
        assert await bench.state("a") == (RESOLVED, 1)
        assert (await bench.store.get("a")).outcomes == (an_outcome("a", 1),)

    async def test_a_relapse_reopens_the_same_letter_and_appends_its_attempts(self, bench: Bench) -> None:
        (first,) = await bench.dead("a")
        await bench.store.note("a", "look at this", act=an_act("letters.note"))
        await bench.plan("a")
        await bench.send()
        again = letter("a", generation=1, error_type="KeyError", fingerprint="f2", queue="orders")

        assert await bench.store.collect([again]) == Collected(reopened=1)
        stored = await bench.store.get("a")
        assert (stored.life.state, stored.life.generation) == (OPEN, 1)
        assert stored.letter.attempts == (*first.attempts, *again.attempts)
        assert (stored.letter.error_type, stored.letter.generation, stored.note) == ("KeyError", 1, "look at this")
        assert [row.error_type for row in (await bench.store.find(Query())).rows] == ["KeyError"]

    async def test_a_relapse_told_again_changes_nothing(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.dead("a", generation=1)
        before = await bench.store.get("a")

        assert await bench.store.collect([letter("a", generation=1)]) == Collected(known=1)
        assert await bench.store.get("a") == before

    async def test_a_relapse_has_the_entry_of_its_latest_death(self, bench: Bench) -> None:
        await bench.dead("a", generation=1, dlq_entry_id="5-0")
        await bench.dead("a", dlq_entry_id="4-0")
        assert (await bench.store.get("a")).letter.dlq_entry_id == "5-0"

        await bench.dead("a", generation=2, dlq_entry_id="6-0")
        (row,) = (await bench.store.find(Query(dlq_entry_id="6-0"))).rows
        assert (row.letter_id, row.dlq_entry_id) == ("a", "6-0")
        assert await bench.names(Query(dlq_entry_id="5-0")) == []

    async def test_a_relapse_at_the_cap_is_parked(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.dead("a", generation=5)

        assert await bench.state("a") == (PARKED, 5)

    async def test_an_older_death_told_late_only_adds_its_attempts(self, bench: Bench) -> None:
        await bench.dead("a", generation=1, error_type="KeyError")
        await bench.dead("a")
        stored = await bench.store.get("a")

        assert (stored.life.state, stored.life.generation, stored.letter.error_type) == (OPEN, 1, "KeyError")
        assert [attempt.generation for attempt in stored.letter.attempts] == [0, 1]

    async def test_a_success_of_an_older_generation_is_history_only(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.dead("a", generation=2)
        await bench.store.collect([], [an_outcome("a", 1)])

        assert await bench.state("a") == (OPEN, 2)
        assert (await bench.store.get("a")).outcomes == (an_outcome("a", 1),)

    async def test_a_reported_failure_reopens_a_letter_that_is_out(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.plan("a")
        await bench.send()
        assert await bench.state("a") == (REDRIVING, 1)
        await bench.store.collect([], [an_outcome("a", 1, succeeded=False)])

        assert await bench.state("a") == (OPEN, 1)
        assert await bench.store.collect([letter("a", generation=1)]) == Collected(reopened=1)

    async def test_a_decision_stands_until_something_higher_is_heard(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.store.discard({"a": 1}, act=an_act("letters.discard"))
        await bench.dead("a")
        assert await bench.state("a") == (DISCARDED, 0)

        await bench.dead("a", generation=1)
        assert await bench.state("a") == (OPEN, 1)

    @pytest.mark.parametrize("order", ORDERS, ids=lambda order: "".join(map(str, order)))
    async def test_every_order_of_events_ends_alike(self, bench: Bench, order: tuple[int, ...]) -> None:
        deaths = [letter("a"), letter("a", generation=1, fingerprint="f2"), letter("a", generation=2)]
        for number in order:
            if number < 3:
                await bench.store.collect([deaths[number]])
            else:
                await bench.store.collect([], [an_outcome("a", 2)])
        stored, incidents = await bench.store.get("a"), await bench.store.incidents(state=None)

        assert (stored.life.state, stored.life.generation, stored.letter.generation) == (RESOLVED, 2, 2)
        assert [attempt.generation for attempt in stored.letter.attempts] == [0, 1, 2]
        assert {row.fingerprint: (row.open, row.total) for row in incidents.rows if row.total} == {"f1": (0, 1)}
        assert (await bench.store.stats()).by_state == {"resolved": 1}

    @pytest.mark.parametrize("order", ORDERS[:6], ids=lambda order: "".join(map(str, order)))
    async def test_one_batch_ends_as_its_events_one_by_one(self, bench: Bench, order: tuple[int, ...]) -> None:
        deaths = [letter("a"), letter("a", generation=1), letter("a", generation=2)]
        told = await bench.store.collect([deaths[number] for number in order if number < 3], [an_outcome("a", 1)])
        stored = await bench.store.get("a")

        assert told == Collected(new=1, known=3)
        assert (stored.life.state, stored.life.generation) == (OPEN, 2)
        assert [attempt.generation for attempt in stored.letter.attempts] == [0, 1, 2]

    async def test_the_trail_over_all_generations_is_bounded(self, bench: Bench) -> None:
        for generation in range(12):
            trail = tuple(Attempt(number, AT, AT, "ValueError", generation=generation) for number in range(1, 17))
            await bench.store.collect([letter("a", generation=generation, attempts=trail)])
        kept = (await bench.store.get("a")).letter.attempts

        assert len(kept) == KEPT_IN_ALL
        assert (kept[0].generation, kept[-1].generation, kept[-1].number) == (0, 11, 16)
