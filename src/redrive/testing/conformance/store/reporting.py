"""What becomes of the letters of a redrive once their messages are heard of."""

from datetime import timedelta

from redrive.core.redrive import ItemStatus
from redrive.testing.conformance.store.bench import AT, OPEN, REDRIVING, RESOLVED, Bench, Suite, an_outcome, letter

LATER = AT + timedelta(minutes=6)


class Reporting(Suite):
    """`collect` and `expire`, as a redrive sees them."""

    async def test_items_succeed_fail_and_fail_otherwise(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c", "d")
        await bench.plan("a", "b", "c", "d")
        await bench.send()
        relapses = [letter("b", generation=1), letter("c", generation=1, fingerprint="f2")]
        await bench.store.collect(relapses, [an_outcome("a", 1)])
        progress = await bench.store.progress("r1")

        one_each = dict.fromkeys(("succeeded", "failed", "failed_otherwise", "sent"), 1)
        assert progress.steps == ({ItemStatus(name): number for name, number in one_each.items()},)
        assert progress.versions == ("v2",)

    async def test_the_failure_is_compared_with_that_at_the_claim(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.dead("a", generation=1, fingerprint="f2")
        await bench.plan("a")
        await bench.send()
        await bench.dead("a", generation=2, fingerprint="f2")

        assert await bench.counts() == [{ItemStatus.FAILED: 1}]

    async def test_a_claimed_item_is_heard_of_before_it_is_recorded_as_sent(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.plan("a")
        await bench.claim()
        await bench.store.collect([], [an_outcome("a", 1)])

        assert await bench.counts() == [{ItemStatus.SUCCEEDED: 1}]
        assert await bench.claim() == []

    async def test_an_item_not_heard_of_in_time_is_unconfirmed_and_still_moves(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c")
        await bench.plan("a", "b", "c")
        await bench.send()
        assert await bench.store.expire("r1", before=AT, quiet=False) == 0
        assert await bench.store.expire("r1", before=LATER, quiet=False) == 3
        assert await bench.store.expire("r1", before=LATER, quiet=False) == 0
        assert await bench.counts() == [{ItemStatus.UNCONFIRMED: 3}]
        assert await bench.state("a") == (REDRIVING, 1)

        await bench.store.collect([letter("b", generation=1)], [an_outcome("a", 1)])
        assert await bench.counts() == [
            {ItemStatus.SUCCEEDED: 1, ItemStatus.FAILED: 1, ItemStatus.UNCONFIRMED: 1},
        ]
        assert [await bench.state(name) for name in "ab"] == [(RESOLVED, 1), (OPEN, 1)]

    async def test_an_item_without_a_relapse_is_quiet_where_nobody_reports(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.plan("a")
        await bench.send()

        assert await bench.store.expire("r1", before=LATER, quiet=True) == 1
        assert await bench.counts() == [{ItemStatus.QUIET: 1}]

    async def test_a_failure_that_was_only_reported_waits_for_its_letter(self, bench: Bench) -> None:
        await bench.dead("a", "b")
        await bench.plan("a", "b")
        await bench.send()
        await bench.store.collect([], [an_outcome(name, 1, succeeded=False) for name in "ab"])
        assert await bench.counts() == [{ItemStatus.SENT: 2}]

        await bench.dead("a", generation=1, fingerprint="f2")
        await bench.store.expire("r1", before=LATER, quiet=False)
        assert await bench.counts() == [{ItemStatus.FAILED_OTHERWISE: 1, ItemStatus.FAILED: 1}]

    async def test_success_is_final(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.plan("a")
        await bench.send()
        await bench.store.collect([], [an_outcome("a", 1)])
        await bench.dead("a", generation=1, fingerprint="f2")

        assert await bench.counts() == [{ItemStatus.SUCCEEDED: 1}]
        assert await bench.state("a") == (RESOLVED, 1)

    async def test_an_unconfirmed_letter_goes_again_only_if_asked_for(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.plan("a", redrive_id="r1")
        await bench.send("r1")
        await bench.store.expire("r1", before=LATER, quiet=False)
        await bench.plan("a", redrive_id="r2")
        await bench.plan("a", redrive_id="r3", again=True)
        assert await bench.claim("r2") == []
        assert [one.generation for one in await bench.send("r3")] == [2]

        await bench.store.collect([], [an_outcome("a", 1)])
        assert await bench.state("a") == (REDRIVING, 2)
        assert [await bench.counts(name) for name in ("r1", "r3")] == [
            [{ItemStatus.SUCCEEDED: 1}],
            [{ItemStatus.SENT: 1}],
        ]

    async def test_an_older_death_does_not_answer_for_a_newer_message(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.plan("a")
        await bench.send()
        await bench.dead("a")

        assert await bench.counts() == [{ItemStatus.SENT: 1}]
        assert await bench.state("a") == (REDRIVING, 1)
