"""Publishing: what a producer hands over, and what it gets for it."""

from datetime import UTC, timedelta

import pytest

from redrive.core.duration import NOW
from redrive.core.message import Message
from redrive.testing.conformance.bench import Bench
from redrive.testing.conformance.suite import Suite, needs


class Publishing(Suite):
    """`Broker.publish`."""

    async def test_publish_returns_the_ids_in_order(self, bench: Bench) -> None:
        ids = await bench.publish(b"a", b"b", b"c")
        taken = await bench.take(await bench.worker(), 3)

        assert {delivery.message.id: delivery.message.body for delivery in taken} == dict(
            zip(ids, [b"a", b"b", b"c"], strict=True)
        )

    async def test_publishing_nothing_returns_no_ids(self, bench: Bench) -> None:
        assert list(await bench.broker.publish(bench.queue, [])) == []

    async def test_the_id_a_producer_gives_is_ignored(self, bench: Bench) -> None:
        given = Message("chosen", bench.queue, b"1")
        ids = await bench.broker.publish(bench.queue, [given, given])

        assert len({"chosen", *ids}) == 3

    async def test_no_id_is_given_twice_on_a_queue(self, bench: Bench) -> None:
        ids = [*await bench.publish(b"1", b"2"), *await bench.publish(b"1")]

        assert len(set(ids)) == 3

    async def test_no_id_is_given_twice_on_two_queues(self, bench: Bench) -> None:
        needs(bench.capabilities.ids_across_queues, "ids_across_queues=False")
        ids = [*await bench.publish(b"1"), *await bench.publish(b"1", queue=f"{bench.queue}.other")]

        assert len(set(ids)) == 2

    async def test_a_published_message_is_the_first_copy_whatever_origin_it_names(self, bench: Bench) -> None:
        await bench.broker.publish(bench.queue, [Message("x", bench.queue, b"1", origin="elsewhere")])
        message = (await bench.take_one(await bench.worker())).message

        assert message.origin_id == message.id

    async def test_reserved_headers_are_stripped(self, bench: Bench) -> None:
        forged = (("rd-letter", b"forged"), ("colour", b"red"), ("rd-attempts", b"1"))
        await bench.broker.publish(bench.queue, [Message("", bench.queue, b"1", headers=forged)])
        delivery = await bench.take_one(await bench.worker())

        assert delivery.message.headers == (("colour", b"red"),)
        assert (delivery.letter_id, delivery.attempts_allowed, delivery.generation) == (None, None, 0)

    async def test_key_and_expiry_arrive(self, bench: Bench) -> None:
        expires_at = bench.clock.now() + timedelta(hours=1)
        sent = Message("", bench.queue, b"1", key=b"customer 7", expires_at=expires_at)
        await bench.broker.publish(bench.queue, [sent])
        message = (await bench.take_one(await bench.worker())).message

        assert (message.key, message.expires_at) == (b"customer 7", expires_at)

    async def test_a_message_says_where_and_when_it_was_published(self, bench: Bench) -> None:
        before = bench.clock.now()
        await bench.publish(b"1")
        message = (await bench.take_one(await bench.worker())).message

        assert message.queue == bench.queue
        assert message.published_at is not None
        assert message.published_at.tzinfo is UTC
        assert before - timedelta(seconds=1) <= message.published_at <= bench.clock.now() + timedelta(seconds=1)

    @pytest.mark.parametrize(
        "odd",
        [
            pytest.param((("\ud800", b"a name that is not text"),), id="a lone surrogate as a name"),
            pytest.param((("colour", "not bytes"),), id="text as a value"),
        ],
    )
    async def test_publish_takes_all_or_none(self, bench: Bench, odd: tuple[tuple[str, bytes], ...]) -> None:
        messages = [Message("", bench.queue, b"plain"), Message("", bench.queue, b"odd", headers=odd)]
        await bench.worker()
        try:
            await bench.broker.publish(bench.queue, messages)
        except Exception:  # noqa: BLE001 - whichever way an adapter refuses, it refuses all
            expected = 0
        else:
            expected = 2

        assert (await bench.depth()).waiting == expected

    async def test_what_was_published_is_durable_when_publish_returns(self, bench: Bench) -> None:
        needs(bench.capabilities.durable, "durable=False")
        ids = await bench.publish(b"1")
        taken = await bench.take_one(await bench.worker(broker=await bench.under_test.reopen()))

        assert [taken.message.id] == list(ids)

    async def test_a_message_published_with_a_delay_says_when_it_was_due(self, bench: Bench) -> None:
        worker = await bench.worker()
        before = bench.clock.now()
        await bench.publish(b"later", delay=timedelta(seconds=5))
        published = bench.clock.now()
        await bench.elapse(timedelta(seconds=10))
        delivery = await bench.take_one(worker)

        second, delay = timedelta(seconds=1), timedelta(seconds=5)
        assert delivery.due_at is not None
        assert before + delay - second < delivery.due_at < published + delay + second
        assert delivery.message.headers == ()

    async def test_a_message_published_with_a_delay_waits_until_it_is_due(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"later", delay=timedelta(seconds=5))
        early = await worker.fetch(1, wait=NOW)
        before = await bench.counts()
        await bench.elapse(timedelta(seconds=6))

        assert not early
        assert before == {"scheduled": 1}
        assert (await bench.take_one(worker)).message.body == b"later"
