"""The broker's own DLQ: looked at, counted, redriven and removed without any store."""

from dataclasses import replace

import pytest

from redrive.core.delivery import Delivery
from redrive.core.errors import ConfigError, DeadLetterError, LetterNotFound
from redrive.core.message import Message
from redrive.core.outcome import Settlement
from redrive.core.place import named
from redrive.core.reason import Reason
from redrive.core.wire.record import SEALED
from redrive.testing.conformance.bench import Bench
from redrive.testing.conformance.suite import Suite, needs


class DeadLetters(Suite):
    """`NativeDeadLetters`."""

    async def test_a_dlq_that_does_not_exist_has_length_zero_and_no_entries(self, bench: Bench) -> None:
        assert await bench.dlq.length() == 0
        assert list(await bench.dlq.peek()) == []

    async def test_looking_at_a_dlq_does_not_create_it(self, bench: Bench) -> None:
        await bench.dlq.length()
        await bench.dlq.peek()

        assert bench.dlq.name not in {queue for queue, _ in await bench.broker.queues()}

    async def test_a_dlq_has_the_name_that_the_capabilities_tell(self, bench: Bench) -> None:
        assert bench.dlq.name == named(bench.capabilities.dlq, bench.queue) != bench.queue

    async def test_peek_shows_the_oldest_entries(self, bench: Bench) -> None:
        await self._one_by_one(bench, 5)

        assert [entry.letter.payload for entry in await bench.dlq.peek(3)] == [b"0", b"1", b"2"]
        assert [entry.letter.payload for entry in await bench.dlq.peek()] == [b"0", b"1", b"2", b"3", b"4"]

    async def test_peek_goes_on_from_an_entry_inclusive(self, bench: Bench) -> None:
        await self._one_by_one(bench, 5)
        third = (await bench.dlq.peek(3))[2]
        page = await bench.dlq.peek(2, start=third.entry_id)

        assert page[0] == third
        assert [entry.letter.payload for entry in page] == [b"2", b"3"]

    async def test_peek_goes_on_from_an_entry_that_has_left(self, bench: Bench) -> None:
        await self._one_by_one(bench, 3)
        second = (await bench.dlq.peek())[1]
        await bench.dlq.redrive(second.entry_id)

        assert [entry.letter.payload for entry in await bench.dlq.peek(start=second.entry_id)] == [b"2"]

    async def test_peek_claims_and_changes_nothing(self, bench: Bench) -> None:
        await bench.given_up(b"1", b"2")
        first = await bench.dlq.peek()

        assert list(await bench.dlq.peek()) == list(first)
        assert await bench.dlq.length() == 2
        collector = await bench.collector()
        assert len(await bench.take(collector, 2)) == 2

    async def test_peek_shows_what_a_collector_has_in_hand(self, bench: Bench) -> None:
        await bench.given_up(b"1")
        collector = await bench.collector()
        await bench.take_one(collector)

        assert [entry.letter.payload for entry in await bench.dlq.peek()] == [b"1"]

    async def test_redrive_moves_one_entry_back_a_generation_on(self, bench: Bench) -> None:
        letters = {letter.payload: letter for letter in await bench.given_up(b"1", b"2")}
        entry = (await bench.dlq.peek())[0]
        message_id = await bench.dlq.redrive(entry.entry_id)
        delivery = await bench.take_one(await bench.worker())

        assert (delivery.message.id, delivery.message.body) == (message_id, entry.letter.payload)
        assert delivery.message.origin_id == entry.letter.original_message_id
        assert delivery.letter_id == letters[entry.letter.payload].letter_id
        assert delivery.generation == 1
        assert await bench.dlq.length() == 1

    async def test_redrive_raises_letter_not_found_also_the_second_time(self, bench: Bench) -> None:
        await bench.given_up(b"1")
        (entry,) = await bench.dlq.peek()
        await bench.dlq.redrive(entry.entry_id)
        for unknown in (entry.entry_id, "no-such-entry", ""):
            with pytest.raises(LetterNotFound):
                await bench.dlq.redrive(unknown)

        assert await bench.counts() == {"waiting": 1}

    async def test_a_letter_of_a_group_goes_back_to_that_group_only(self, bench: Bench) -> None:
        other = await bench.worker(group="audit")
        await bench.given_up(b"1")
        await other.settle([Settlement(await bench.take_one(other))])
        await self._redrive_the_only_one(bench)

        assert (await bench.counts())["waiting"] == 1
        assert (await bench.counts(group="audit")).get("waiting") is None

    async def test_a_foreign_letter_goes_back_to_the_queue_it_came_from(self, bench: Bench) -> None:
        workers = [await bench.worker(), await bench.worker(group="audit")]
        delivery = await self._delivery_from_elsewhere(bench)
        await bench.dlq.send(replace(bench.letter(delivery), group="", queue=bench.queue))
        await self._redrive_the_only_one(bench)

        assert [(await bench.take_one(worker)).message.body for worker in workers] == [b"foreign", b"foreign"]

    async def test_a_letter_says_when_it_was_written(self, bench: Bench) -> None:
        before = bench.clock.now()
        await bench.given_up(b"1")
        (entry,) = await bench.dlq.peek()

        assert entry.letter.dlq_published_at is not None
        assert before <= entry.letter.dlq_published_at <= bench.clock.now()

    async def test_a_letter_that_names_a_hostile_queue_stays_where_it_is(self, bench: Bench) -> None:
        _, delivery = await bench.one_delivery()
        await bench.dlq.send(replace(bench.letter(delivery), queue="../../etc"))
        with pytest.raises(ConfigError):
            await self._redrive_the_only_one(bench)

        assert await bench.dlq.length() == 1

    async def test_a_letter_without_its_payload_stays_where_it_is(self, bench: Bench) -> None:
        _, delivery = await bench.one_delivery()
        await bench.dlq.send(replace(bench.letter(delivery), payload=None))
        with pytest.raises(DeadLetterError):
            await self._redrive_the_only_one(bench)

        assert await bench.dlq.length() == 1

    async def test_a_letter_without_its_payload_is_read_as_it_was(self, bench: Bench) -> None:
        _, delivery = await bench.one_delivery()
        letter = replace(bench.letter(delivery), payload=None, key=None, headers=())
        await bench.dlq.send(letter)
        (entry,) = await bench.dlq.peek()

        assert (entry.letter.payload, entry.letter.payload_sha256) == (None, letter.payload_sha256)
        assert (entry.letter.letter_id, entry.letter.reason) == (letter.letter_id, letter.reason)

    async def test_a_sealed_letter_stays_where_it_is_byte_for_byte(self, bench: Bench) -> None:
        _, delivery = await bench.one_delivery()
        sealed = replace(bench.letter(delivery), payload=b"\xff sealed", key=None, headers=((SEALED, b"k1"),))
        await bench.dlq.send(sealed)
        with pytest.raises(DeadLetterError, match="encrypted with the key 'k1'"):
            await self._redrive_the_only_one(bench)
        (entry,) = await bench.dlq.peek()

        assert (entry.letter.payload, entry.letter.headers) == (sealed.payload, sealed.headers)
        assert entry.letter.payload_sha256 == sealed.payload_sha256

    async def test_what_is_no_letter_can_be_looked_at_and_sent_back(self, bench: Bench) -> None:
        worker = await bench.worker()
        foreign = Message("", bench.dlq.name, b"\xff not ours", headers=(("colour", b"red"),))
        await bench.broker.publish(bench.dlq.name, [foreign])
        (entry,) = await bench.dlq.peek()
        await bench.dlq.redrive(entry.entry_id)
        message = (await bench.take_one(worker)).message

        assert (entry.letter.payload, entry.letter.reason) == (foreign.body, Reason.UNKNOWN)
        assert (message.body, message.headers) == (foreign.body, foreign.headers)

    async def test_a_letter_in_a_shared_dlq_goes_back_to_its_own_queue(self, bench: Bench) -> None:
        delivery = await self._delivery_from_elsewhere(bench)
        await bench.dlq.send(bench.letter(delivery))
        await self._redrive_the_only_one(bench)

        depth = await bench.depth(queue=delivery.message.queue)
        assert (depth.waiting, depth.in_flight) == (1, 1)

    async def test_a_collector_that_held_a_redriven_entry_has_lost_it(self, bench: Bench) -> None:
        await bench.given_up(b"1")
        collector = await bench.collector()
        delivery = await bench.take_one(collector)
        await self._redrive_the_only_one(bench)

        assert [answer.status for answer in await collector.settle([Settlement(delivery)])] == ["lost"]
        assert await bench.counts() == {"waiting": 1}

    async def test_remove_removes_one_entry_for_good(self, bench: Bench) -> None:
        needs(bench.capabilities.can_remove, "can_remove=False")
        await bench.given_up(b"1", b"2")
        first, second = await bench.dlq.peek()
        await bench.dlq.remove(first.entry_id)

        assert [entry.entry_id for entry in await bench.dlq.peek()] == [second.entry_id]
        assert await bench.counts() == {"dead": 1}

    async def test_remove_raises_letter_not_found(self, bench: Bench) -> None:
        needs(bench.capabilities.can_remove, "can_remove=False")
        await bench.given_up(b"1")
        (entry,) = await bench.dlq.peek()
        await bench.dlq.remove(entry.entry_id)
        for unknown in (entry.entry_id, "no-such-entry", ""):
            with pytest.raises(LetterNotFound):
                await bench.dlq.remove(unknown)

    async def test_an_entry_of_one_dlq_cannot_be_touched_through_another(self, bench: Bench) -> None:
        await bench.given_up(b"1")
        (entry,) = await bench.dlq.peek()
        other = bench.broker.dead_letters(f"{bench.queue}.other")
        with pytest.raises(LetterNotFound):
            await other.redrive(entry.entry_id)

        assert await bench.dlq.length() == 1

    async def test_a_message_of_a_queue_is_no_entry_of_its_dlq(self, bench: Bench) -> None:
        await bench.given_up(b"1")
        (waiting,) = await bench.publish(b"2")
        with pytest.raises(LetterNotFound):
            await bench.dlq.redrive(waiting)

        assert await bench.counts() == {"waiting": 1, "dead": 1}

    async def test_a_letter_is_written_once_per_generation(self, bench: Bench) -> None:
        _, delivery = await bench.one_delivery()
        letter = bench.letter(delivery)
        await bench.dlq.send(letter)
        await bench.dlq.send(letter)
        await bench.dlq.send(replace(letter, generation=1))

        assert [entry.letter.generation for entry in await bench.dlq.peek()] == [0, 1]

    async def test_a_letter_sent_says_everything_it_was_given(self, bench: Bench) -> None:
        _, delivery = await bench.one_delivery(b"\x00\xff")
        letter = bench.letter(delivery)
        await bench.dlq.send(letter)
        (entry,) = await bench.dlq.peek()

        assert replace(entry.letter, dlq_published_at=None, collected_at=None) == letter

    async def test_sending_a_letter_does_not_settle_its_message(self, bench: Bench) -> None:
        _, delivery = await bench.one_delivery()
        await bench.dlq.send(bench.letter(delivery))

        assert await bench.counts() == {"in_flight": 1, "dead": 1}

    async def test_what_is_in_a_dlq_is_durable(self, bench: Bench) -> None:
        needs(bench.capabilities.durable, "durable=False")
        await bench.given_up(b"1")
        (entry,) = await bench.dlq.peek()

        assert list(await (await bench.under_test.reopen()).dead_letters(bench.queue).peek()) == [entry]

    @staticmethod
    async def _one_by_one(bench: Bench, count: int) -> None:
        for number in range(count):
            await bench.given_up(b"%d" % number)

    @staticmethod
    async def _redrive_the_only_one(bench: Bench) -> None:
        (entry,) = await bench.dlq.peek()
        await bench.dlq.redrive(entry.entry_id)

    @staticmethod
    async def _delivery_from_elsewhere(bench: Bench) -> Delivery:
        elsewhere = f"{bench.queue}.elsewhere"
        worker = await bench.worker(queue=elsewhere)
        await bench.publish(b"foreign", queue=elsewhere)
        return await bench.take_one(worker)
