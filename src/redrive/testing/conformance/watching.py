"""Watching over a group: pausing it, counting it, seeing who is at work."""

import asyncio
import os
from dataclasses import replace
from datetime import timedelta

import pytest

from redrive.core.errors import QueueNotFound
from redrive.core.outcome import Settlement
from redrive.core.place import DeadLetterPlace
from redrive.core.ports import Options
from redrive.testing.conformance.bench import GROUP, Bench, new_owner
from redrive.testing.conformance.suite import Suite, needs


class Pausing(Suite):
    """`Broker.pause`."""

    async def test_a_paused_group_fetches_nothing(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"1")
        await bench.broker.pause(bench.queue, group=GROUP, why="the bank is down")

        assert await bench.nothing_for(worker)
        assert await bench.nothing_for(await bench.worker())
        depth = await bench.depth()
        assert (depth.paused, depth.waiting) == ("the bank is down", 1)

    async def test_a_paused_group_takes_no_suspect(self, bench: Bench) -> None:
        worker, _ = await bench.one_delivery()
        await bench.let_die(seen_by=worker)
        await bench.broker.pause(bench.queue, group=GROUP, why="the bank is down")

        assert await worker.fetch_suspect() is None

    async def test_a_fetch_that_waits_in_a_paused_group_ends_empty(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.broker.pause(bench.queue, group=GROUP, why="the bank is down")
        await bench.publish(b"1")

        assert not await bench.finish(worker.fetch(1, wait=timedelta(seconds=1)))

    async def test_a_resumed_group_fetches_again(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"1")
        await bench.broker.pause(bench.queue, group=GROUP, why="the bank is down")
        waiting = asyncio.ensure_future(worker.fetch(1, wait=timedelta(minutes=1)))
        await asyncio.sleep(0)
        await bench.broker.pause(bench.queue, group=GROUP, why=None)

        assert [found.message.body for found in await bench.finish(waiting)] == [b"1"]
        assert (await bench.depth()).paused is None

    async def test_pausing_twice_keeps_the_last_reason(self, bench: Bench) -> None:
        await bench.worker()
        await bench.broker.pause(bench.queue, group=GROUP, why="first")
        await bench.broker.pause(bench.queue, group=GROUP, why="second")

        assert (await bench.depth()).paused == "second"

    async def test_a_pause_is_of_one_group_only(self, bench: Bench) -> None:
        await bench.worker()
        other = await bench.worker(group="audit")
        await bench.publish(b"1")
        await bench.broker.pause(bench.queue, group=GROUP, why="the bank is down")

        assert (await bench.take_one(other)).message.body == b"1"

    async def test_a_paused_group_can_still_settle_and_release(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"1", b"2")
        acked, released = await bench.take(worker, 2)
        await bench.broker.pause(bench.queue, group=GROUP, why="the bank is down")
        answers = await worker.settle([Settlement(acked)])
        await worker.release([released])

        assert [answer.status for answer in answers] == ["done"]
        assert await bench.counts() == {"waiting": 1}

    async def test_a_pause_is_durable_and_every_process_obeys(self, bench: Bench) -> None:
        needs(bench.capabilities.durable, "durable=False")
        await bench.worker()
        await bench.publish(b"1")
        await bench.broker.pause(bench.queue, group=GROUP, why="the bank is down")
        elsewhere = await bench.under_test.reopen()

        assert await bench.nothing_for(await bench.worker(broker=elsewhere))
        assert (await elsewhere.depth(bench.queue, group=GROUP)).paused == "the bank is down"

    async def test_a_pause_is_obeyed_within_two_seconds_by_a_worker_of_another_process(self, bench: Bench) -> None:
        needs(bench.capabilities.many_processes, "many_processes=False")
        there = await bench.worker(broker=await bench.under_test.reopen())
        await bench.publish(b"1", b"2")
        await bench.take_one(there)
        await bench.broker.pause(bench.queue, group=GROUP, why="the bank is down")
        await bench.elapse(timedelta(seconds=2))

        assert await bench.nothing_for(there)


class Depths(Suite):
    """`Broker.depth`."""

    async def test_every_message_of_a_group_is_in_exactly_one_place(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(*(b"%d" % number for number in range(8)))
        suspect, *_ = await bench.take(worker, 1)
        await bench.let_die(seen_by=worker)
        kept, acked, failed, dead = await bench.take(worker, 4)
        hold = Options(owner=new_owner(), dlq=DeadLetterPlace(enabled=False, off="hold"))
        holder = await bench.worker(options=hold)
        held = await bench.take_one(holder)
        await holder.settle([bench.give_up(held, holder)])
        await worker.settle([Settlement(acked), bench.retry(failed, timedelta(minutes=5)), bench.give_up(dead, worker)])

        assert len({each.message.id for each in (suspect, kept, acked, failed, dead, held)}) == 6
        assert await bench.counts() == {"waiting": 3, "in_flight": 1, "scheduled": 1, "held": 1, "dead": 1}

    async def test_depth_raises_queue_not_found(self, bench: Bench) -> None:
        with pytest.raises(QueueNotFound):
            await bench.depth()

    async def test_an_empty_group_has_nothing_anywhere(self, bench: Bench) -> None:
        await bench.worker()
        depth = await bench.depth()

        assert await bench.counts() == {}
        assert (depth.oldest_at, depth.next_due_at, depth.paused) == (None, None, None)

    async def test_depth_knows_the_oldest_message_that_waits(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"old")
        await bench.elapse(timedelta(seconds=5))
        await bench.publish(b"new")
        oldest_at = (await bench.depth()).oldest_at
        published = [delivery.message.published_at for delivery in await bench.take(worker, 2)]

        assert oldest_at == min(at for at in published if at is not None)

    async def test_dead_counts_the_entries_of_the_default_dlq(self, bench: Bench) -> None:
        letter, _ = await bench.given_up(b"1", b"2")
        await bench.dlq.send(replace(letter, generation=7))

        assert (await bench.depth()).dead == await bench.dlq.length() == 3

    async def test_a_message_that_fell_due_waits(self, bench: Bench) -> None:
        await bench.worker()
        await bench.publish(b"1", delay=timedelta(seconds=5))
        await bench.elapse(timedelta(seconds=6))

        assert await bench.counts() == {"waiting": 1}
        assert (await bench.depth()).next_due_at is None


class Workers(Suite):
    """`Subscription.heartbeat` and `Broker.alive`."""

    async def test_a_worker_that_beats_is_alive(self, bench: Bench) -> None:
        owner = new_owner()
        worker = await bench.worker(options=Options(owner=owner, version="4f2c"))
        await worker.heartbeat(paused="the bank is down")
        (alive,) = await bench.broker.alive(bench.queue, group=GROUP)

        assert (alive.name, alive.version, alive.paused) == (owner, "4f2c", "the bank is down")
        assert alive.pid == os.getpid()
        assert alive.host

    async def test_the_last_beat_counts(self, bench: Bench) -> None:
        worker = await bench.worker()
        await worker.heartbeat(paused="the bank is down")
        await bench.elapse(timedelta(seconds=10))
        before = bench.clock.now()
        await worker.heartbeat()
        (alive,) = await bench.broker.alive(bench.queue, group=GROUP)

        assert alive.paused is None
        assert alive.seen_at >= before - timedelta(seconds=1)

    async def test_every_worker_of_the_group_is_listed(self, bench: Bench) -> None:
        for group in (GROUP, GROUP, "audit"):
            await (await bench.worker(group=group)).heartbeat()

        assert len(await bench.broker.alive(bench.queue, group=GROUP)) == 2

    async def test_a_worker_not_heard_of_for_thirty_seconds_is_not_alive(self, bench: Bench) -> None:
        await (await bench.worker()).heartbeat()
        await bench.elapse(timedelta(seconds=31))

        assert list(await bench.broker.alive(bench.queue, group=GROUP)) == []

    async def test_a_worker_that_signed_off_is_not_alive(self, bench: Bench) -> None:
        worker = await bench.worker()
        await worker.heartbeat()
        await worker.aclose()

        assert list(await bench.broker.alive(bench.queue, group=GROUP)) == []
