"""Giving up: the letter into the DLQ and the message out of its queue, in one step."""

from dataclasses import replace

from redrive.core.outcome import GiveUp, Settlement
from redrive.core.place import DeadLetterPlace
from redrive.core.ports import Options, Subscription
from redrive.core.wire import read_letter
from redrive.testing.conformance.bench import Bench, new_owner
from redrive.testing.conformance.suite import Suite, needs


class GivingUp(Suite):
    """`Subscription.settle` with `GiveUp`."""

    async def test_a_message_given_up_is_in_the_dlq_and_nowhere_else(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        (answer,) = await worker.settle([bench.give_up(delivery, worker)])

        assert answer.status == "done"
        assert await bench.counts() == {"dead": 1}
        assert await bench.dlq.length() == 1

    async def test_the_letter_says_everything_it_was_given(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        full = replace(
            bench.letter(delivery, incarnation=worker.incarnation),
            app_version="4f2c",
            node="rack-1",
            pid=4711,
            content_type="application/json",
            error_code="no_customer",
            severity="high",
            stack="Traceback: …",
            fingerprint="0123abcd",
            user_id="u1",
            tenant_id="t1",
            trace_id="00ff",
            task_type="charge",
            context={"colour": "rot", "depth": {"levels": [1, 2.5, None, True]}},
        )
        await worker.settle([Settlement(delivery, GiveUp(), letter=full)])
        (entry,) = await bench.dlq.peek()

        assert replace(entry.letter, dlq_published_at=None, collected_at=None) == full

    async def test_a_fixed_dlq_takes_the_letters_of_many_queues(self, bench: Bench) -> None:
        needs(bench.capabilities.any_name, "any_name=False")
        place = DeadLetterPlace(name=f"{bench.queue}.cellar")
        await self._give_up_one(bench, place=place, queue=bench.queue)
        await self._give_up_one(bench, place=place, queue=f"{bench.queue}.other")
        shared = bench.broker.dead_letters(bench.queue, place=place)

        assert shared.name == f"{bench.queue}.cellar"
        assert {entry.letter.queue for entry in await shared.peek()} == {bench.queue, f"{bench.queue}.other"}
        assert await bench.dlq.length() == 0

    async def test_a_dlq_may_be_named_by_a_pattern(self, bench: Bench) -> None:
        needs(bench.capabilities.any_name, "any_name=False")
        place = DeadLetterPlace(name="dead-{queue}")
        await self._give_up_one(bench, place=place, queue=bench.queue)
        found = bench.broker.dead_letters(bench.queue, place=place)

        assert found.name == f"dead-{bench.queue}"
        assert await found.length() == 1

    async def test_with_the_dlq_off_a_message_can_be_held(self, bench: Bench) -> None:
        held = DeadLetterPlace(enabled=False, off="hold")
        worker = await self._give_up_one(bench, place=held, queue=bench.queue)
        await bench.let_die(seen_by=worker)

        assert await bench.counts() == {"held": 1}
        assert await bench.nothing_for(worker)
        assert await worker.fetch_suspect() is None

    async def test_freed_messages_run_again_with_all_their_attempts(self, bench: Bench) -> None:
        options = Options(owner=new_owner(), dlq=DeadLetterPlace(enabled=False, off="hold"))
        worker = await bench.worker(options=options)
        await bench.publish(b"1")
        await worker.settle([bench.retry(await bench.take_one(worker))])
        await worker.settle([bench.give_up(await bench.take_one(worker), worker)])
        freed = await bench.broker.free(bench.queue, group="shop")
        again = await bench.broker.free(bench.queue, group="shop")
        delivery = await bench.take_one(worker)

        assert (freed, again) == (1, 0)
        assert (delivery.message.body, delivery.attempt, delivery.first_attempt_at) == (b"1", 1, None)

    async def test_with_the_dlq_off_a_message_can_be_dropped(self, bench: Bench) -> None:
        await self._give_up_one(bench, place=DeadLetterPlace(enabled=False, off="drop"), queue=bench.queue)

        assert await bench.counts() == {}

    async def test_with_the_dlq_off_no_letter_is_needed(self, bench: Bench) -> None:
        options = Options(owner=new_owner(), dlq=DeadLetterPlace(enabled=False, off="drop"))
        worker = await bench.worker(options=options)
        await bench.publish(b"1")
        (answer,) = await worker.settle([Settlement(await bench.take_one(worker), GiveUp())])

        assert answer.status == "done"

    async def test_a_dlq_is_a_queue_that_a_collector_can_work_on(self, bench: Bench) -> None:
        (letter,) = await bench.given_up(b"1")
        collector = await bench.collector()
        delivery = await bench.take_one(collector)
        message = delivery.message
        read = read_letter(message.body, message.headers, queue=bench.queue, entry_id=message.id, now=bench.clock.now())
        while_in_hand = await bench.dlq.length()
        await collector.settle([Settlement(delivery)])

        assert (read.letter_id, read.payload, read.queue) == (letter.letter_id, b"1", bench.queue)
        assert while_in_hand == 1
        assert await bench.dlq.length() == 0

    async def test_two_messages_with_the_same_body_are_two_letters(self, bench: Bench) -> None:
        first, second = await bench.given_up(b"same", b"same")

        assert first.letter_id != second.letter_id
        assert await bench.dlq.length() == 2

    @staticmethod
    async def _give_up_one(bench: Bench, *, place: DeadLetterPlace, queue: str) -> Subscription:
        worker = await bench.worker(queue=queue, options=Options(owner=new_owner(), dlq=place))
        await bench.publish(b"1", queue=queue)
        (answer,) = await worker.settle([bench.give_up(await bench.take_one(worker), worker)])
        assert answer.status == "done"
        return worker
