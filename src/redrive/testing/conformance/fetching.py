"""Fetching: who gets what, and when."""

import asyncio
from datetime import timedelta

from redrive.core.duration import NOW
from redrive.core.outcome import Settlement
from redrive.testing.conformance.bench import GROUP, Bench
from redrive.testing.conformance.suite import Suite, needs


class Fetching(Suite):
    """`Subscription.fetch`."""

    async def test_fetch_returns_at_most_limit_deliveries(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"1", b"2", b"3")
        first = await worker.fetch(2, wait=bench.under_test.patience)

        assert 1 <= len(first) <= 2
        assert len(await bench.take(worker, 3 - len(first))) == 3 - len(first)

    async def test_a_first_delivery_has_spent_nothing(self, bench: Bench) -> None:
        _, delivery = await bench.one_delivery()

        assert (delivery.failures, delivery.crashes, delivery.generation, delivery.attempt) == (0, 0, 0, 1)
        assert (delivery.letter_id, delivery.attempts_allowed, delivery.first_attempt_at) == (None, None, None)
        assert (delivery.alone, delivery.trail, delivery.group) == (False, b"", GROUP)

    async def test_fetch_does_not_wait_when_told_so(self, bench: Bench) -> None:
        assert not await (await bench.worker()).fetch(10, wait=NOW)

    async def test_fetch_returns_empty_when_its_wait_is_over(self, bench: Bench) -> None:
        worker = await bench.worker()

        assert not await bench.finish(worker.fetch(10, wait=timedelta(seconds=1)))

    async def test_fetch_waits_for_the_first_message(self, bench: Bench) -> None:
        worker = await bench.worker()
        waiting = asyncio.ensure_future(worker.fetch(10, wait=timedelta(minutes=1)))
        await asyncio.sleep(0)
        await bench.publish(b"1")

        assert [delivery.message.body for delivery in await bench.finish(waiting)] == [b"1"]

    async def test_fetch_waits_for_a_message_to_fall_due(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"1", delay=timedelta(seconds=2))
        due_at = (await bench.depth()).next_due_at
        taken = await bench.finish(worker.fetch(10, wait=timedelta(minutes=1)))

        assert [delivery.message.body for delivery in taken] == [b"1"]
        assert due_at is not None
        assert taken[0].received_at >= due_at

    async def test_fetch_waits_for_another_workers_release(self, bench: Bench) -> None:
        first, held = await bench.one_delivery()
        second = await bench.worker()
        waiting = asyncio.ensure_future(second.fetch(10, wait=timedelta(minutes=1)))
        await asyncio.sleep(0)
        await first.release([held])

        assert [found.message.id for found in await bench.finish(waiting)] == [held.message.id]

    async def test_a_fetch_that_is_cancelled_takes_nothing(self, bench: Bench) -> None:
        worker = await bench.worker()
        waiting = asyncio.ensure_future(worker.fetch(10, wait=timedelta(minutes=1)))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        await bench.publish(b"1")

        assert await bench.counts() == {"waiting": 1}
        assert (await bench.take_one(worker)).message.body == b"1"

    async def test_two_workers_never_hold_the_same_message(self, bench: Bench) -> None:
        workers = [await bench.worker() for _ in range(4)]
        ids = await bench.publish(*(b"%d" % number for number in range(50)))
        taken: list[str] = []
        while found := await asyncio.gather(*(worker.fetch(7, wait=bench.under_test.patience) for worker in workers)):
            more = [delivery.message.id for deliveries in found for delivery in deliveries]
            if not more:
                break
            taken.extend(more)

        assert sorted(taken) == sorted(ids)

    async def test_workers_in_two_processes_never_hold_the_same_message(self, bench: Bench) -> None:
        needs(bench.capabilities.many_processes, "many_processes=False")
        here, there = await bench.worker(), await bench.worker(broker=await bench.under_test.reopen())
        ids = await bench.publish(*(b"%d" % number for number in range(20)))
        taken = [*await bench.take(here, 7), *await bench.take(there, 13)]

        assert sorted(delivery.message.id for delivery in taken) == sorted(ids)
        assert await bench.nothing_for(here)

    async def test_fetch_never_returns_a_suspect(self, bench: Bench) -> None:
        worker, _ = await bench.one_delivery()
        await bench.publish(b"innocent")
        await bench.let_die(seen_by=worker)

        assert [found.message.body for found in await bench.take(worker, 1)] == [b"innocent"]
        assert await bench.nothing_for(worker)

    async def test_what_fetch_returned_may_have_started(self, bench: Bench) -> None:
        _, taken = await bench.one_delivery()
        other = await bench.worker()
        await bench.let_die(seen_by=other)

        assert (await bench.suspect(other)).message == taken.message

    async def test_what_fetch_returned_is_noted_durably(self, bench: Bench) -> None:
        needs(bench.capabilities.durable, "durable=False")
        _, taken = await bench.one_delivery()
        other = await bench.worker(broker=await bench.under_test.reopen())
        await bench.let_die(seen_by=other)

        assert (await bench.suspect(other)).message == taken.message
        assert await bench.nothing_for(other)

    async def test_a_message_in_hand_is_in_flight_until_it_is_settled(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        during = await bench.counts()
        await worker.settle([Settlement(delivery)])

        assert during == {"in_flight": 1}
        assert await bench.counts() == {}
