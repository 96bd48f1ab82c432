"""Taking in letters: all or none, once each."""

import asyncio

import pytest

from redrive.core.errors import LetterNotFound
from redrive.core.stored import Collected
from redrive.testing.conformance.store.bench import OPEN, PARKED, RESOLVED, Bench, Suite, an_outcome, letter


class Collecting(Suite):
    """`collect`, at first sight and told again."""

    async def test_a_letter_is_there_as_it_was_told(self, bench: Bench) -> None:
        told = letter("a", user_id="u1", context={"cart": [1, 2]}, headers=(("colour", b"red"),), key=b"k")

        assert await bench.store.collect([told]) == Collected(new=1)
        stored = await bench.store.get("a")
        assert stored.letter == told
        assert stored.life.state is OPEN
        assert (stored.note, stored.edits, stored.outcomes, stored.redrive_ids) == ("", (), (), ())

    async def test_a_letter_told_again_changes_nothing(self, bench: Bench) -> None:
        await bench.dead("a")
        before = await bench.store.get("a")

        assert await bench.store.collect([letter("a", error_message="another text")]) == Collected(known=1)
        assert await bench.store.get("a") == before
        assert (await bench.store.stats()).total == 1

    async def test_a_letter_twice_in_one_batch_is_one(self, bench: Bench) -> None:
        assert await bench.store.collect([letter("a"), letter("b"), letter("a")]) == Collected(new=2, known=1)
        assert (await bench.store.stats()).by_state == {"open": 2}

    async def test_nothing_told_is_nothing_done(self, bench: Bench) -> None:
        assert await bench.store.collect([]) == Collected()

    async def test_many_letters_arrive_in_one_batch(self, bench: Bench) -> None:
        names = [f"l{number:04}" for number in range(1500)]
        await bench.dead(*names)

        assert (await bench.store.stats()).total == 1500
        assert await bench.names(limit=400) == names[::-1]

    async def test_collectors_at_the_same_time_keep_each_letter_once(self, bench: Bench) -> None:
        told = [letter(f"l{number}") for number in range(50)]
        results = await asyncio.gather(*(bench.store.collect(told) for _ in range(4)))

        assert sum(result.new for result in results) == 50
        assert (await bench.store.stats()).by_state == {"open": 50}

    async def test_a_letter_first_seen_at_the_cap_is_parked(self, bench: Bench) -> None:
        await bench.dead("a", generation=5)

        assert await bench.state("a") == (PARKED, 5)

    async def test_a_letter_that_is_not_there_is_not_found(self, bench: Bench) -> None:
        with pytest.raises(LetterNotFound, match="nobody"):
            await bench.store.get("nobody")

    async def test_what_was_committed_is_seen_by_another_process(self, bench: Bench) -> None:
        await bench.store.collect([letter("a")], [an_outcome("a", 1)])
        other = await bench.under_test.reopen()

        assert (await other.get("a")).life.state is RESOLVED

    async def test_work_that_can_wait_comes_to_an_end(self, bench: Bench) -> None:
        await bench.dead("a", "b")

        while await bench.store.tend():
            pass
        assert (await bench.store.stats()).total == 2

    async def test_closing_twice_is_closing_once(self, bench: Bench) -> None:
        await bench.dead("a")

        await bench.store.aclose()
        await bench.store.aclose()
