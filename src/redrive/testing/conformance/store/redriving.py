"""Redrives: claimed once, sent once, resumed after a crash."""

import asyncio
from datetime import timedelta

import pytest

from redrive.core.errors import LetterNotFound, StateConflict
from redrive.core.life import GENERATION_CAP
from redrive.core.query import Query
from redrive.core.redrive import ItemStatus, Planned, Redrive, RedriveState, Target
from redrive.core.stored import Claimed
from redrive.testing.conformance.store.bench import (
    AT,
    PARKED,
    REDRIVING,
    RESOLVED,
    Bench,
    Suite,
    a_redrive,
    an_act,
    an_outcome,
)

TARGETS = (Target("sqlite", "mail", "shop"), Target("kafka", "orders"))


class Redriving(Suite):
    """`RedriveStore`, up to the moment of sending."""

    async def test_a_letter_that_was_removed_after_it_was_claimed_is_skipped(self, bench: Bench) -> None:
        await bench.dead("a", "b")
        await bench.plan("a", "b")
        await bench.claim()
        await bench.dead("a", generation=5)  # sent back and died again elsewhere: it waits for nobody here
        purged = await bench.store.purge(Query(), before=AT + timedelta(days=9), limit=9, act=an_act("letters.purge"))
        again = await bench.claim()

        assert (purged, await bench.names()) == (1, ["b"])
        assert [one.letter_id for one in again] == ["b"]
        assert await bench.counts() == [{ItemStatus.SKIPPED: 1, ItemStatus.CLAIMED: 1}]

    async def test_a_redrive_is_there_as_it_was_planned(self, bench: Bench) -> None:
        await bench.dead("a", "b")
        redrive = await bench.plan("a", "b", steps=(1,), rate=12.5, to="queue", targets=TARGETS, failed_on=("v1",))

        assert await bench.store.redrive("r1") == redrive
        assert await bench.counts() == [{ItemStatus.PLANNED: 1}, {ItemStatus.PLANNED: 1}]
        assert (await bench.store.get("a")).redrive_ids == ("r1",)
        with pytest.raises(LetterNotFound, match="r9"):
            await bench.store.redrive("r9")

    async def test_a_redrive_created_again_is_the_first_one(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.plan("a")
        await bench.send()
        await bench.plan("a")

        assert await bench.counts() == [{ItemStatus.SENT: 1}]

    async def test_the_latest_redrive_comes_first_page_by_page(self, bench: Bench) -> None:
        for number in range(3):
            await bench.store.create(a_redrive(f"r{number}", total=0), [], act=an_act("letters.redrive"))
        first = await bench.store.redrives(limit=2)
        second = await bench.store.redrives(limit=2, after=first.after)

        assert [[one.redrive_id for one in page.rows] for page in (first, second)] == [["r2", "r1"], ["r0"]]
        assert [one.redrive_id for one in await bench.store.unfinished()] == ["r0", "r1", "r2"]

    async def test_a_claim_spends_the_next_generation(self, bench: Bench) -> None:
        (letter,) = await bench.dead("a", headers=(("colour", b"red"),), key=b"k")
        await bench.plan("a")

        assert await bench.claim() == [
            Claimed(
                letter_id="a",
                generation=1,
                step=0,
                broker="sqlite",
                queue="orders",
                group="shop",
                body=letter.payload,
                headers=letter.headers,
                key=b"k",
                origin="m-a",
            )
        ]
        assert await bench.state("a") == (REDRIVING, 1)
        assert await bench.counts() == [{ItemStatus.CLAIMED: 1}]

    async def test_what_was_claimed_and_never_sent_is_given_again(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c")
        await bench.plan("a", "b", "c")
        first = await bench.claim(limit=2)
        await bench.store.sent("r1", {"a": "m1"}, at=AT)
        second = await bench.claim(limit=2)

        assert [one.letter_id for one in first] == ["a", "b"]
        assert [(one.letter_id, one.generation) for one in second] == [("b", 1), ("c", 1)]
        assert second[0] == first[1]

    async def test_letters_are_claimed_step_by_step_in_their_order(self, bench: Bench) -> None:
        names = ["c", "a", "b", "d"]
        await bench.dead(*sorted(names))
        await bench.plan(*names, steps=(1, 2))

        assert [[one.letter_id for one in await bench.send(step=step)] for step in range(3)] == [
            ["c"],
            ["a", "b"],
            ["d"],
        ]

    async def test_a_letter_that_changed_since_the_preview_is_skipped(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c")
        await bench.plan("a", "b", "c")
        await bench.store.discard({"a": 1}, act=an_act("letters.discard"))
        await bench.dead("b", generation=1)

        assert [one.letter_id for one in await bench.claim(limit=1)] == ["c"]
        assert await bench.counts() == [{ItemStatus.SKIPPED: 2, ItemStatus.CLAIMED: 1}]

    async def test_a_letter_is_out_in_one_redrive_only(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.plan("a", redrive_id="r1")
        await bench.claim("r1")
        await bench.plan("a", redrive_id="r2", again=True)

        assert await bench.claim("r2") == []
        assert await bench.counts("r2") == [{ItemStatus.SKIPPED: 1}]

    async def test_claims_at_the_same_time_spend_one_generation(self, bench: Bench) -> None:
        names = [f"l{number}" for number in range(20)]
        await bench.dead(*names)
        await bench.plan(*names, redrive_id="r1")
        await bench.plan(*names, redrive_id="r2")
        await asyncio.gather(*(bench.claim(name, limit=20) for name in ("r1", "r2", "r1", "r2")))

        assert {await bench.state(name) for name in names} == {(REDRIVING, 1)}
        counted = [sum((await bench.counts(name))[0].values()) for name in ("r1", "r2")]
        assert counted == [20, 20]

    async def test_a_parked_letter_is_sent_only_over_the_cap(self, bench: Bench) -> None:
        await bench.dead("a", generation=GENERATION_CAP)
        assert await bench.state("a") == (PARKED, GENERATION_CAP)
        await bench.plan("a", redrive_id="r1")
        await bench.plan("a", redrive_id="r2", over_cap=True)

        assert await bench.claim("r1") == []
        assert [one.generation for one in await bench.claim("r2")] == [GENERATION_CAP + 1]

    async def test_nothing_new_is_claimed_unless_the_redrive_runs(self, bench: Bench) -> None:
        await bench.dead("a", "b")
        await bench.plan("a", "b")
        await bench.claim(limit=1)
        await self._mark(bench, RedriveState.PAUSED)
        assert [one.letter_id for one in await bench.claim()] == ["a"]
        assert await bench.store.unfinished() == []

        await self._mark(bench, RedriveState.RUNNING)
        assert [one.letter_id for one in await bench.claim()] == ["a", "b"]

    async def test_at_the_end_what_is_out_is_unconfirmed_and_the_rest_untouched(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c", "d")
        await bench.plan("a", "b", "c", "d", steps=(2,))
        await bench.claim()
        await bench.store.sent("r1", {"a": "m1"}, at=AT)
        stopped = await self._mark(bench, RedriveState.STOPPED)

        assert (stopped.state, stopped.why, stopped.ended_at) == (RedriveState.STOPPED, "because", AT)
        assert await bench.counts() == [{ItemStatus.UNCONFIRMED: 2}, {ItemStatus.UNTOUCHED: 2}]
        assert await bench.store.redrive("r1") == stopped
        assert await self._mark(bench, RedriveState.STOPPED) == stopped
        with pytest.raises(StateConflict, match="stopped"):
            await self._mark(bench, RedriveState.RUNNING)

    @pytest.mark.parametrize("state", [RedriveState.CANCELLED, RedriveState.STOPPED])
    async def test_what_was_out_at_the_end_goes_again_and_is_still_heard_of(
        self, bench: Bench, state: RedriveState
    ) -> None:
        await bench.dead("a", "b", "c")
        await bench.plan("a", "b", "c")
        await bench.claim()
        await bench.store.sent("r1", {"a": "m1"}, at=AT)
        await self._mark(bench, state)
        await bench.store.sent("r1", {"b": "m2"}, at=AT)  # a redriver that was about to
        assert await bench.claim() == []

        await bench.plan("a", "b", redrive_id="r2", again=True)
        assert [(one.letter_id, one.generation) for one in await bench.send("r2")] == [("a", 2), ("b", 2)]
        await bench.store.collect([], [an_outcome("a", 2), an_outcome("c", 1)])
        await bench.dead("b", generation=1)
        assert await bench.counts("r2") == [{ItemStatus.SUCCEEDED: 1, ItemStatus.SENT: 1}]
        assert await bench.counts("r1") == [
            {ItemStatus.UNCONFIRMED: 1, ItemStatus.FAILED: 1, ItemStatus.SUCCEEDED: 1},
        ]
        assert [await bench.state(name) for name in "abc"] == [(RESOLVED, 2), (REDRIVING, 2), (RESOLVED, 1)]

    async def test_more_letters_than_one_transaction_takes_are_left_at_the_end(self, bench: Bench) -> None:
        names = [f"l{number:04}" for number in range(2500)]
        await bench.dead(*names)
        items = [Planned(name, 1) for name in names]
        await bench.store.create(a_redrive("r1", total=2500), items, act=an_act("letters.redrive"))
        for _ in range(2):
            claimed = await bench.claim(limit=600)
            await bench.store.sent("r1", {one.letter_id: "m" for one in claimed}, at=AT)
        await self._mark(bench, RedriveState.CANCELLED)

        assert await bench.counts() == [{ItemStatus.UNCONFIRMED: 1200, ItemStatus.UNTOUCHED: 1300}]

    async def test_sending_told_twice_or_late_changes_nothing(self, bench: Bench) -> None:
        await bench.dead("a", "b")
        await bench.plan("a", "b")
        await bench.claim()
        await bench.store.collect([], [an_outcome("a", 1)])
        for _ in range(2):
            await bench.store.sent("r1", {"a": "m1", "b": "m2", "nobody": "m3"}, at=AT)

        assert await bench.counts() == [{ItemStatus.SUCCEEDED: 1, ItemStatus.SENT: 1}]

    async def test_going_on_in_spite_of_failed_canaries_is_kept(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.plan("a")
        await self._mark(bench, RedriveState.PAUSED)
        act = an_act("redrives.resume")
        resumed = await bench.store.mark("r1", RedriveState.RUNNING, why="", act=act, accepted=2)

        assert (resumed.accepted, resumed.state, resumed.ended_at) == (2, RedriveState.RUNNING, None)
        assert (await self._mark(bench, RedriveState.DONE)).accepted == 2

    async def test_a_redrive_has_one_redriver_at_a_time(self, bench: Bench) -> None:
        await bench.plan()

        async def take(owner: str, now: int, until: int) -> bool:
            seconds = [AT + timedelta(seconds=number) for number in (now, until)]
            return await bench.store.take("r1", owner=owner, now=seconds[0], until=seconds[1])

        assert [await take("one", 0, 10), await take("two", 5, 15), await take("one", 8, 18)] == [True, False, True]
        assert [await take("two", 18, 28), await take("one", 19, 29)] == [True, False]
        assert [await take("two", 20, 20), await take("one", 20, 30)] == [True, True]

    async def test_a_redrive_may_be_taken_from_the_start(self, bench: Bench) -> None:
        later = AT + timedelta(seconds=10)
        await bench.store.create(a_redrive("r1", total=0), [], act=an_act("letters.redrive"), owner="one", until=later)

        assert not await bench.store.take("r1", owner="two", now=AT, until=later)
        assert await bench.store.take("r1", owner="two", now=later, until=later)

    async def test_a_letter_without_a_payload_is_skipped(self, bench: Bench) -> None:
        await bench.dead("a", payload=None)
        await bench.plan("a")

        assert await bench.claim() == []
        assert await bench.counts() == [{ItemStatus.SKIPPED: 1}]

    async def _mark(self, bench: Bench, state: RedriveState) -> Redrive:
        return await bench.store.mark("r1", state, why="because", act=an_act("redrives.mark"))
