"""Sending back: a letter returns once per generation, to the group that failed."""

from dataclasses import replace

from redrive.core.message import Message
from redrive.core.outcome import Settlement
from redrive.core.wire import dump_outcome
from redrive.testing.conformance.bench import Bench
from redrive.testing.conformance.suite import Suite, needs


class SendingBack(Suite):
    """`Broker.send_back`, and what a redriven message reports."""

    async def test_send_back_returns_message_ids_in_order(self, bench: Bench) -> None:
        letters = await bench.given_up(b"1", b"2", b"3")
        ids = await bench.broker.send_back([bench.send_back(letter) for letter in letters])
        taken = await bench.take(await bench.worker(), 3)

        assert {each.message.id: each.letter_id for each in taken} == dict(
            zip(ids, [letter.letter_id for letter in letters], strict=True)
        )

    async def test_a_letter_is_sent_back_once_per_generation(self, bench: Bench) -> None:
        (letter,) = await bench.given_up(b"1")
        item = bench.send_back(letter)
        first = await bench.broker.send_back([item])
        again = await bench.broker.send_back([item, item])

        assert list(again) == [*first, *first]
        assert (await bench.counts())["waiting"] == 1

    async def test_a_letter_is_not_sent_back_again_after_it_was_handled(self, bench: Bench) -> None:
        (letter,) = await bench.given_up(b"1")
        first = await bench.broker.send_back([bench.send_back(letter)])
        worker = await bench.worker()
        await worker.settle([Settlement(await bench.take_one(worker))])
        again = await bench.broker.send_back([bench.send_back(letter)])

        assert list(again) == list(first)
        assert await bench.nothing_for(worker)

    async def test_the_once_key_is_durable(self, bench: Bench) -> None:
        needs(bench.capabilities.durable, "durable=False")
        (letter,) = await bench.given_up(b"1")
        first = await bench.broker.send_back([bench.send_back(letter)])
        again = await (await bench.under_test.reopen()).send_back([bench.send_back(letter)])

        assert list(again) == list(first)

    async def test_the_next_generation_is_sent_again(self, bench: Bench) -> None:
        (letter,) = await bench.given_up(b"1")
        ids = await bench.broker.send_back([bench.send_back(letter), bench.send_back(replace(letter, generation=1))])
        taken = await bench.take(await bench.worker(), 2)

        assert len(set(ids)) == 2
        assert sorted(each.generation for each in taken) == [1, 2]

    async def test_sending_nothing_back_returns_no_ids(self, bench: Bench) -> None:
        assert list(await bench.broker.send_back([])) == []

    async def test_a_letter_sent_to_its_group_reaches_no_other(self, bench: Bench) -> None:
        other = await bench.worker(group="audit")
        (letter,) = await bench.given_up(b"1")
        await other.settle([Settlement(await bench.take_one(other))])
        await bench.broker.send_back([bench.send_back(letter)])

        assert (await bench.take_one(await bench.worker())).letter_id == letter.letter_id
        assert await bench.nothing_for(other)
        assert (await bench.counts(group="audit")).get("waiting") is None

    async def test_a_letter_sent_to_the_queue_reaches_every_group(self, bench: Bench) -> None:
        ours, theirs = await bench.worker(), await bench.worker(group="audit")
        (letter,) = await bench.given_up(b"1")
        await theirs.settle([Settlement(await bench.take_one(theirs))])
        await bench.broker.send_back([bench.send_back(letter, group=None)])

        assert [(await bench.take_one(worker)).message.body for worker in (ours, theirs)] == [b"1", b"1"]

    async def test_in_the_queue_no_group_speaks_for_the_letter(self, bench: Bench) -> None:
        (letter,) = await bench.given_up(b"1")
        await bench.broker.send_back([bench.send_back(letter, group=None)])
        delivery = await bench.take_one(await bench.worker())

        assert (delivery.letter_id, delivery.generation) == (None, 0)
        assert delivery.message.headers == letter.headers

    async def test_a_redriven_delivery_names_its_letter_and_begins_anew(self, bench: Bench) -> None:
        (letter,) = await bench.given_up(b"1")
        await bench.broker.send_back([bench.send_back(letter)])
        delivery = await bench.take_one(await bench.worker())

        assert (delivery.letter_id, delivery.generation) == (letter.letter_id, 1)
        assert (delivery.failures, delivery.crashes, delivery.attempts_allowed) == (0, 0, None)
        assert (delivery.first_attempt_at, delivery.trail) == (None, b"")

    async def test_a_redriven_message_keeps_its_origin_and_idempotency_key(self, bench: Bench) -> None:
        worker, first = await bench.one_delivery()
        letter = bench.letter(first, incarnation=worker.incarnation)
        await worker.settle([bench.give_up(first, worker)])
        await bench.broker.send_back([bench.send_back(letter)])
        message = (await bench.take_one(worker)).message

        assert message.id != first.message.id
        assert message.origin_id == first.message.id
        assert message.idempotency_key == first.message.idempotency_key

    async def test_a_canary_says_how_many_attempts_it_has(self, bench: Bench) -> None:
        (letter,) = await bench.given_up(b"1")
        await bench.broker.send_back([replace(bench.send_back(letter), attempts_allowed=1)])

        assert (await bench.take_one(await bench.worker())).attempts_allowed == 1

    async def test_a_redriven_message_keeps_its_letter_through_retries_and_deaths(self, bench: Bench) -> None:
        (letter,) = await bench.given_up(b"1")
        await bench.broker.send_back([replace(bench.send_back(letter), attempts_allowed=2)])
        worker = await bench.worker()
        first = await bench.take_one(worker)
        await worker.settle([bench.retry(first)])
        second = await bench.take_one(worker)
        await bench.let_die(seen_by=worker)
        third = await bench.suspect(worker)

        seen = {(each.letter_id, each.generation, each.attempts_allowed) for each in (first, second, third)}
        assert seen == {(letter.letter_id, 1, 2)}
        assert first.message == second.message == third.message

    async def test_without_a_mark_nothing_is_added_and_the_group_is_the_same(self, bench: Bench) -> None:
        (letter,) = await bench.given_up(b"1")
        other = await bench.worker(group="audit")
        await bench.broker.send_back([replace(bench.send_back(letter), marked=False)])
        delivery = await bench.take_one(await bench.worker())

        assert (delivery.letter_id, delivery.generation, delivery.message.headers) == (None, 0, ())
        assert await bench.nothing_for(other)

    async def test_our_own_headers_are_hidden_from_a_redriven_message(self, bench: Bench) -> None:
        worker = await bench.worker()
        headers = (("colour", b"red"), ("colour", b"blue"))
        await bench.broker.publish(bench.queue, [Message("", bench.queue, b"1", headers)])
        delivery = await bench.take_one(worker)
        await worker.settle([bench.give_up(delivery, worker)])
        await bench.broker.send_back([bench.send_back(bench.letter(delivery, incarnation=worker.incarnation))])

        assert (await bench.take_one(worker)).message.headers == headers

    async def test_a_success_is_reported_in_the_step_that_acks(self, bench: Bench) -> None:
        (letter,) = await bench.given_up(b"1")
        await bench.broker.send_back([bench.send_back(letter)])
        worker = await bench.worker()
        delivery = await bench.take_one(worker)
        report = bench.report(delivery, succeeded=True)
        await worker.settle([Settlement(delivery, report=report)])
        await worker.settle([Settlement(delivery, report=report)])
        outcomes = await bench.worker(queue=bench.outcomes, group="collector")

        assert (await bench.take_one(outcomes)).message.body == dump_outcome(report)
        assert await bench.nothing_for(outcomes)

    async def test_a_second_death_is_reported_and_reopens_the_same_letter(self, bench: Bench) -> None:
        (letter,) = await bench.given_up(b"1")
        (entry,) = await bench.dlq.peek()
        await bench.dlq.redrive(entry.entry_id)
        worker = await bench.worker()
        delivery = await bench.take_one(worker)
        report = bench.report(delivery, succeeded=False)
        await worker.settle([bench.give_up(delivery, worker)._replace(report=report)])
        outcomes = await bench.worker(queue=bench.outcomes, group="collector")
        (again,) = await bench.dlq.peek()

        assert (again.letter.letter_id, again.letter.generation) == (letter.letter_id, 1)
        assert (await bench.take_one(outcomes)).message.body == dump_outcome(report)
