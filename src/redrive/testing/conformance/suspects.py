"""Suspects: what may have been running when its worker died runs alone, and every death counts."""

from datetime import timedelta

from redrive.core.attempt import load_trail
from redrive.core.delivery import Delivery
from redrive.core.outcome import Settlement
from redrive.core.ports import Obituary, Options, Subscription
from redrive.testing.conformance.bench import Bench, new_owner
from redrive.testing.conformance.suite import Suite, needs


class Suspects(Suite):
    """`Subscription.fetch_suspect`, and the heartbeat that finds them."""

    async def test_without_a_death_there_is_no_suspect(self, bench: Bench) -> None:
        worker, _ = await bench.one_delivery()
        await bench.publish(b"waiting")

        assert await worker.fetch_suspect() is None
        assert await worker.heartbeat() == 0

    async def test_what_a_dead_worker_held_becomes_suspect(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"1", b"2", b"3")
        taken = await bench.take(worker, 2)
        other = await bench.worker()
        await bench.let_die(seen_by=other)
        found = [await bench.suspect(other), await bench.suspect(other)]

        assert sorted(each.message.id for each in found) == sorted(each.message.id for each in taken)
        assert await other.fetch_suspect() is None

    async def test_heartbeat_returns_how_many_suspects_wait(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"1", b"2", b"3")
        await bench.take(worker, 2)
        await bench.elapse(bench.lease + timedelta(seconds=1))
        found = await worker.heartbeat()
        await bench.suspect(worker)

        assert (found, await worker.heartbeat()) == (2, 1)

    async def test_suspects_wait(self, bench: Bench) -> None:
        worker, _ = await bench.one_delivery()
        await bench.let_die(seen_by=worker)

        assert await bench.counts() == {"waiting": 1}

    async def test_a_death_in_company_is_no_crash(self, bench: Bench) -> None:
        worker, _ = await bench.one_delivery()
        suspect = await self._after_death(bench, worker)

        assert (suspect.alone, suspect.crashes, suspect.failures, suspect.attempt) == (True, 0, 0, 1)
        assert suspect.trail == b""

    async def test_each_death_alone_is_one_more_crash(self, bench: Bench) -> None:
        worker, _ = await bench.one_delivery()
        crashes = [(await self._after_death(bench, worker)).crashes for _ in range(4)]

        assert crashes == [0, 1, 2, 3]

    async def test_a_crash_is_added_to_the_trail(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        await worker.settle([bench.retry(delivery)])
        await bench.take_one(worker)
        await self._after_death(bench, worker)
        trail = load_trail((await self._after_death(bench, worker)).trail)

        assert [(attempt.number, attempt.crash) for attempt in trail] == [(1, False), (2, True)]
        assert trail[1].started_at <= trail[1].ended_at

    async def test_a_crash_carries_the_obituary_of_its_owner(self, bench: Bench) -> None:
        heir = await self._heir_of_a_lone_death(bench, named=None)
        trail = load_trail((await bench.suspect(heir)).trail)

        assert ["SIGKILL, 512 MiB" in attempt.error_message for attempt in trail] == [True]

    async def test_an_obituary_of_somebody_else_is_not_added(self, bench: Bench) -> None:
        heir = await self._heir_of_a_lone_death(bench, named=new_owner())
        trail = load_trail((await bench.suspect(heir)).trail)

        assert ["SIGKILL, 512 MiB" in attempt.error_message for attempt in trail] == [False]

    async def test_a_crash_keeps_failures_and_a_failure_keeps_crashes(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        await worker.settle([bench.retry(delivery)])
        await bench.take_one(worker)
        await self._after_death(bench, worker)
        crashed = await self._after_death(bench, worker)
        await worker.settle([bench.retry(crashed)])
        failed = await bench.take_one(worker)

        assert (crashed.failures, crashed.crashes, crashed.attempt) == (1, 1, 3)
        assert (failed.failures, failed.crashes, failed.attempt) == (2, 1, 4)

    async def test_a_crash_counts_as_the_first_attempt(self, bench: Bench) -> None:
        worker, _ = await bench.one_delivery()
        before = await self._after_death(bench, worker)
        after = await self._after_death(bench, worker)

        assert before.first_attempt_at is None
        assert after.first_attempt_at is not None
        assert after.first_attempt_at < after.received_at

    async def test_a_suspect_is_handed_to_one_worker_only(self, bench: Bench) -> None:
        worker, _ = await bench.one_delivery()
        other = await bench.worker()
        await self._after_death(bench, worker)

        assert await other.fetch_suspect() is None
        assert await bench.counts() == {"in_flight": 1}

    async def test_a_suspect_that_ends_well_is_done(self, bench: Bench) -> None:
        worker, _ = await bench.one_delivery()
        suspect = await self._after_death(bench, worker)
        await worker.settle([Settlement(suspect)])

        assert await bench.counts() == {}

    async def test_a_suspect_that_fails_is_cleared_and_retried_in_company(self, bench: Bench) -> None:
        worker, _ = await bench.one_delivery()
        suspect = await self._after_death(bench, worker)
        await worker.settle([bench.retry(suspect)])
        again = await bench.take_one(worker)

        assert (again.message, again.alone, again.failures, again.crashes) == (suspect.message, False, 1, 0)

    async def test_a_suspect_can_be_given_up(self, bench: Bench) -> None:
        worker, _ = await bench.one_delivery()
        suspect = await self._after_death(bench, worker)
        await worker.settle([bench.give_up(suspect, worker)])

        assert await bench.counts() == {"dead": 1}

    async def test_a_released_suspect_stays_one_and_has_not_crashed(self, bench: Bench) -> None:
        worker, _ = await bench.one_delivery()
        suspect = await self._after_death(bench, worker)
        await worker.release([suspect])
        counts = await bench.counts()
        again = await bench.suspect(worker)

        assert counts == {"waiting": 1}
        assert await bench.nothing_for(worker)
        assert (again.message, again.alone, again.crashes) == (suspect.message, True, 0)

    async def test_a_death_in_company_after_a_crash_is_no_further_crash(self, bench: Bench) -> None:
        worker, _ = await bench.one_delivery()
        await self._after_death(bench, worker)
        crashed = await self._after_death(bench, worker)
        await worker.settle([bench.retry(crashed)])
        await bench.take_one(worker)
        suspect = await self._after_death(bench, worker)

        assert (suspect.crashes, suspect.failures) == (1, 1)

    async def test_the_mark_is_durable_before_a_suspect_is_handed_out(self, bench: Bench) -> None:
        needs(bench.capabilities.durable, "durable=False")
        worker, _ = await bench.one_delivery()
        await self._after_death(bench, worker)
        other = await bench.worker(broker=await bench.under_test.reopen())

        assert (await self._after_death(bench, other)).crashes == 1

    async def _after_death(self, bench: Bench, worker: Subscription) -> Delivery:
        await bench.let_die(seen_by=worker)
        return await bench.suspect(worker)

    async def _heir_of_a_lone_death(self, bench: Bench, *, named: str | None) -> Subscription:
        victim = new_owner()
        worker = await bench.worker(options=Options(owner=victim))
        await bench.publish(b"1")
        await bench.take_one(worker)
        await self._after_death(bench, worker)
        obituary = Obituary(owner=named or victim, text="SIGKILL, 512 MiB")
        heir = await bench.worker(options=Options(owner=new_owner(), obituary=obituary))
        await bench.let_die(seen_by=heir)
        return heir
