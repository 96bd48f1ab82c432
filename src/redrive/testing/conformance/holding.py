"""Holding on and letting go: leases renewed, deliveries handed back, workers signing off."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from redrive.core.delivery import Delivery
from redrive.core.outcome import Settlement
from redrive.core.ports import Subscription
from redrive.testing.conformance.bench import PATIENCE, Bench
from redrive.testing.conformance.suite import Suite, needs


class Holding(Suite):
    """`Subscription.extend`, `release` and `aclose`."""

    async def test_an_extended_lease_does_not_end(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        other = await bench.worker()
        for _ in range(3):
            await bench.elapse(bench.lease * 0.6)
            lost = await worker.extend([delivery])
            await other.heartbeat()

        assert list(lost) == []
        assert await other.fetch_suspect() is None
        assert [answer.status for answer in await worker.settle([Settlement(delivery)])] == ["done"]

    async def test_extend_returns_those_that_are_lost(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"1", b"2")
        acked, kept = await bench.take(worker, 2)
        await worker.settle([Settlement(acked)])
        lost = await worker.extend([acked, kept])

        assert [delivery.message.id for delivery in lost] == [acked.message.id]

    async def test_extend_renews_no_other_lease_than_those_it_is_given(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"1", b"2", b"3")
        kept, *others = await bench.take(worker, 3)
        await bench.elapse(bench.lease * 0.6)
        await worker.extend([kept])
        await bench.elapse(bench.lease * 0.6)
        suspects = await worker.heartbeat()
        lost = await worker.extend([kept, *others])

        assert suspects == 2
        assert [delivery.message.id for delivery in lost] == [delivery.message.id for delivery in others]
        assert await bench.counts() == {"waiting": 2, "in_flight": 1}

    async def test_a_suspect_that_runs_for_long_keeps_its_lease(self, bench: Bench) -> None:
        worker, _ = await bench.one_delivery()
        await bench.let_die(seen_by=worker)
        suspect = await bench.suspect(worker)
        for _ in range(3):
            await bench.elapse(bench.lease * 0.6)
            await worker.extend([suspect])

        assert await worker.heartbeat() == 0
        assert [answer.status for answer in await worker.settle([Settlement(suspect)])] == ["done"]

    async def test_a_thread_can_renew_leases_while_the_event_loop_is_blocked(self, bench: Bench) -> None:
        needs(bench.capabilities.thread_heartbeat, "thread_heartbeat=False")
        worker, delivery = await bench.one_delivery()
        await bench.elapse(bench.lease * 0.6)
        with ThreadPoolExecutor(1) as thread:
            lost = thread.submit(lambda: asyncio.run(_renewed(worker, delivery))).result(PATIENCE)
        await bench.elapse(bench.lease * 0.6)

        assert lost == []
        assert await worker.heartbeat() == 0

    async def test_extending_nothing_loses_nothing(self, bench: Bench) -> None:
        assert list(await (await bench.worker()).extend([])) == []

    async def test_extend_can_be_repeated(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()

        assert [list(await worker.extend([delivery])) for _ in range(2)] == [[], []]

    async def test_release_hands_back_and_spends_no_attempt(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        await worker.release([delivery])
        waiting = await bench.counts()
        again = await bench.take_one(await bench.worker())

        assert waiting == {"waiting": 1}
        assert (again.message, again.failures, again.crashes, again.alone) == (delivery.message, 0, 0, False)

    async def test_release_keeps_what_earlier_attempts_have_spent(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        await worker.settle([bench.retry(delivery)])
        second = await bench.take_one(worker)
        await worker.release([second])
        again = await bench.take_one(worker)

        assert again.failures == 1
        assert (again.trail, again.first_attempt_at) == (second.trail, second.first_attempt_at)

    async def test_release_passes_over_lost_deliveries(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"1", b"2")
        done, kept = await bench.take(worker, 2)
        await worker.settle([Settlement(done)])
        await worker.release([done, kept])

        assert await bench.counts() == {"waiting": 1}

    async def test_a_release_repeated_does_not_take_the_message_from_its_new_holder(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        await worker.release([delivery])
        other = await bench.worker()
        taken = await bench.take_one(other)
        await worker.release([delivery])

        assert await bench.counts() == {"in_flight": 1}
        assert [answer.status for answer in await other.settle([Settlement(taken)])] == ["done"]

    async def test_a_released_delivery_can_no_longer_be_settled(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        await worker.release([delivery])

        assert [answer.status for answer in await worker.settle([bench.retry(delivery)])] == ["lost"]
        assert await bench.counts() == {"waiting": 1}

    async def test_a_released_delivery_can_no_longer_be_acked(self, bench: Bench) -> None:
        needs(not bench.capabilities.late_success, "late_success=True")
        worker, delivery = await bench.one_delivery()
        await worker.release([delivery])

        assert [answer.status for answer in await worker.settle([Settlement(delivery)])] == ["lost"]
        assert await bench.counts() == {"waiting": 1}

    async def test_a_late_success_is_a_success(self, bench: Bench) -> None:
        needs(bench.capabilities.late_success, "late_success=False")
        worker, delivery = await bench.one_delivery()
        await worker.release([delivery])

        assert [answer.status for answer in await worker.settle([Settlement(delivery)])] == ["done"]
        assert await bench.nothing_for(worker)
        assert await bench.counts() == {}

    async def test_what_is_in_hand_at_sign_off_stays_leased_until_the_lease_ends(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        await worker.aclose()
        other = await bench.worker()
        held = await bench.nothing_for(other), await other.fetch_suspect()
        await bench.let_die(seen_by=other)

        assert held == (True, None)
        assert (await bench.suspect(other)).message == delivery.message

    async def test_signing_off_twice_is_signing_off_once(self, bench: Bench) -> None:
        worker = await bench.worker()
        await worker.aclose()
        await worker.aclose()

        assert await bench.counts() == {}

    async def test_a_worker_that_signed_off_does_not_end_its_neighbours(self, bench: Bench) -> None:
        leaving, staying = await bench.worker(), await bench.worker()
        await leaving.aclose()
        await bench.publish(b"1")

        assert (await bench.take_one(staying)).message.body == b"1"

    async def test_only_the_lease_of_the_dead_ends(self, bench: Bench) -> None:
        living, dead = await bench.worker(), await bench.worker()
        await bench.publish(b"1", b"2")
        kept, lost = await bench.take_one(living), await bench.take_one(dead)
        await bench.elapse(bench.lease * 0.6)
        await living.extend([kept])
        await bench.elapse(bench.lease * 0.6 + timedelta(seconds=1))
        suspects = await living.heartbeat()

        assert suspects == 1
        assert (await bench.suspect(living)).message == lost.message
        assert [answer.status for answer in await living.settle([Settlement(kept)])] == ["done"]


async def _renewed(worker: Subscription, delivery: Delivery) -> list[Delivery]:
    await worker.heartbeat()
    return list(await worker.extend([delivery]))
