"""Groups: each has its own copy of what is published; its workers share it."""

import pytest

from redrive.core.message import Message
from redrive.core.outcome import Settlement
from redrive.core.ports.originals import Originals
from redrive.testing.conformance.bench import GROUP, Bench
from redrive.testing.conformance.suite import Suite, needs


class Groups(Suite):
    """`Broker.subscribe` and `Broker.queues`."""

    async def test_subscribing_creates_queue_and_group(self, bench: Bench) -> None:
        await bench.worker()

        assert (bench.queue, GROUP) in await bench.broker.queues()
        assert await bench.counts() == {}

    async def test_the_first_group_gets_what_was_waiting(self, bench: Bench) -> None:
        ids = await bench.publish(b"1", b"2")
        taken = await bench.take(await bench.worker(), 2)

        assert sorted(each.message.id for each in taken) == sorted(ids)

    async def test_a_later_group_gets_what_is_published_from_then_on(self, bench: Bench) -> None:
        await bench.publish(b"before")
        await bench.worker()
        later = await bench.worker(group="audit")
        await bench.publish(b"after")

        assert [each.message.body for each in await bench.take(later, 1)] == [b"after"]
        assert await bench.nothing_for(later)
        assert await bench.counts() == {"waiting": 2}

    async def test_each_group_has_its_own_copy(self, bench: Bench) -> None:
        ours, theirs = await bench.worker(), await bench.worker(group="audit")
        await bench.publish(b"1")
        mine = await bench.take_one(ours)
        await ours.settle([bench.give_up(mine, ours)])
        copy = await bench.take_one(theirs)

        assert copy.message == mine.message
        assert (mine.group, copy.group) == (GROUP, "audit")
        assert (await bench.counts(group="audit")).get("in_flight") == 1

    async def test_a_message_that_another_group_still_has_is_found_by_its_id(self, bench: Bench) -> None:
        broker = bench.broker
        if not isinstance(broker, Originals):
            pytest.skip("the adapter is no Originals: it cannot find a message by its id")
        ours, _ = await bench.worker(), await bench.worker(group="audit")
        message = Message("", bench.queue, b"\xff1", headers=(("colour", b"red"),), key=b"k")
        (message_id,) = await broker.publish(bench.queue, [message])
        await ours.settle([bench.give_up(await bench.take_one(ours), ours)])
        found = await broker.original(bench.queue, message_id)

        assert found is not None
        assert (found.id, found.body, found.headers, found.key) == (message_id, b"\xff1", message.headers, b"k")
        assert await bench.counts(group="audit") == {"waiting": 1, "dead": 1}
        for strange in ("", "1", "../1-1", f"{message_id}1", "0-0"):
            assert await broker.original(bench.queue, strange) is None
        assert await broker.original(f"{bench.queue}.nowhere", message_id) is None

    async def test_what_one_group_fails_the_other_has_not_failed(self, bench: Bench) -> None:
        ours, theirs = await bench.worker(), await bench.worker(group="audit")
        await bench.publish(b"1")
        await ours.settle([bench.retry(await bench.take_one(ours))])

        assert (await bench.take_one(theirs)).failures == 0
        assert (await bench.take_one(ours)).failures == 1

    async def test_joining_a_group_again_finds_its_work_where_it_was(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        await bench.publish(b"2")
        await worker.release([delivery])
        await worker.aclose()

        assert len(await bench.take(await bench.worker(), 2)) == 2

    async def test_a_group_without_workers_still_gets_its_copies(self, bench: Bench) -> None:
        await (await bench.worker()).aclose()
        await bench.publish(b"1")

        assert await bench.counts() == {"waiting": 1}
        assert (await bench.take_one(await bench.worker())).message.body == b"1"

    async def test_a_queue_to_which_nobody_subscribed_is_listed_with_an_empty_group(self, bench: Bench) -> None:
        await bench.publish(b"1", b"2")
        listed = [group for queue, group in await bench.broker.queues() if queue == bench.queue]

        assert listed == [""]
        assert await bench.counts(group="") == {"waiting": 2}

    async def test_every_queue_and_group_is_listed_once(self, bench: Bench) -> None:
        await bench.publish(b"1")
        for group in (GROUP, "audit", GROUP):
            await bench.worker(group=group)
        listed = [group for queue, group in await bench.broker.queues() if queue == bench.queue]

        assert sorted(listed) == ["audit", GROUP]

    async def test_the_incarnation_names_this_life_of_the_queue(self, bench: Bench) -> None:
        here, there = await bench.worker(), await bench.worker(group="audit")
        elsewhere = await bench.worker(queue=f"{bench.queue}.other")

        assert here.incarnation == there.incarnation != elsewhere.incarnation

    async def test_the_incarnation_outlives_the_process(self, bench: Bench) -> None:
        needs(bench.capabilities.durable, "durable=False")
        here = await bench.worker()
        there = await bench.worker(broker=await bench.under_test.reopen())

        assert here.incarnation == there.incarnation

    async def test_two_queues_do_not_see_each_others_messages(self, bench: Bench) -> None:
        ours, theirs = await bench.worker(), await bench.worker(queue=f"{bench.queue}.other")
        await bench.publish(b"1")
        delivery = await bench.take_one(ours)

        assert await bench.nothing_for(theirs)
        assert [answer.status for answer in await theirs.settle([Settlement(delivery)])] == ["lost"]
        assert await bench.counts() == {"in_flight": 1}
