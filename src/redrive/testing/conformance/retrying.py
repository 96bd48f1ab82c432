"""Retrying: a due time in the broker, never a sleeping worker."""

from datetime import timedelta

from redrive.core.attempt import load_trail
from redrive.core.message import Message
from redrive.core.outcome import Settlement
from redrive.testing.conformance.bench import Bench
from redrive.testing.conformance.suite import Suite

DELAY = timedelta(seconds=5)


class Retrying(Suite):
    """`Subscription.settle` with `RetryLater`."""

    async def test_a_retry_is_scheduled_and_comes_back_when_it_is_due(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        (answer,) = await worker.settle([bench.retry(delivery, DELAY)])
        early = await bench.nothing_for(worker)
        before = await bench.depth()
        await bench.elapse(DELAY + timedelta(seconds=1))
        again = await bench.take_one(worker)

        assert early
        assert (before.scheduled, before.next_due_at) == (1, answer.due_at)
        assert (again.message, again.group) == (delivery.message, delivery.group)

    async def test_a_retry_says_when_it_was_due_and_a_message_that_never_waited_says_nothing(
        self, bench: Bench
    ) -> None:
        worker, delivery = await bench.one_delivery()
        (answer,) = await worker.settle([bench.retry(delivery, DELAY)])
        await bench.elapse(2 * DELAY)
        again = await bench.take_one(worker)

        assert delivery.due_at is None
        assert again.due_at == answer.due_at

    async def test_a_retry_reports_its_real_due_time(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        asked_for = bench.clock.now() + DELAY
        (answer,) = await worker.settle([bench.retry(delivery, DELAY)])

        assert answer.due_at is not None
        assert answer.due_at >= asked_for
        if not bench.capabilities.delay_grid:
            assert answer.due_at <= bench.clock.now() + DELAY + timedelta(milliseconds=1)

    async def test_a_delay_is_rounded_up_to_the_grid_and_never_down(self, bench: Bench) -> None:
        delays = [timedelta(seconds=seconds) for seconds in (0.4, 1, 7.3, 61)]
        worker = await bench.worker()
        await bench.publish(*(b"%d" % number for number in range(len(delays))))
        now = bench.clock.now()
        taken = await bench.take(worker, len(delays))
        answers = await worker.settle([bench.retry(each, delay) for each, delay in zip(taken, delays, strict=True)])

        assert [
            delay
            for answer, delay in zip(answers, delays, strict=True)
            if answer.due_at is None or answer.due_at < now + delay
        ] == []

    async def test_a_retry_without_delay_comes_back_at_once(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        await worker.settle([bench.retry(delivery)])

        assert (await bench.take_one(worker)).message == delivery.message

    async def test_each_retry_spends_one_failure(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        seen = []
        for _ in range(3):
            await worker.settle([bench.retry(delivery)])
            delivery = await bench.take_one(worker)
            seen.append((delivery.failures, delivery.crashes, delivery.attempt))

        assert seen == [(1, 0, 2), (2, 0, 3), (3, 0, 4)]

    async def test_the_trail_survives_every_retry(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        for why in ("first", "sécond", "th\x00ird"):
            await worker.settle([bench.retry(delivery, why=why)])
            delivery = await bench.take_one(worker)
        trail = load_trail(delivery.trail)

        assert [(attempt.number, attempt.error_message) for attempt in trail] == [
            (1, "first"),
            (2, "sécond"),
            (3, "th\x00ird"),
        ]

    async def test_the_first_attempt_is_remembered_across_retries(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        first = bench.retry(delivery)
        await worker.settle([first])
        await bench.elapse(DELAY)
        again = await bench.take_one(worker)
        await worker.settle([bench.retry(again)])
        third = await bench.take_one(worker)

        assert first.attempt is not None
        assert again.first_attempt_at == third.first_attempt_at == first.attempt.started_at

    async def test_the_due_times_of_two_messages_do_not_hold_each_other_up(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"slow", b"quick")
        delays = {b"slow": timedelta(seconds=60), b"quick": timedelta(seconds=2)}
        taken = await bench.take(worker, 2)
        await worker.settle([bench.retry(each, delays[each.message.body]) for each in taken])
        await bench.elapse(timedelta(seconds=3))

        assert [found.message.body for found in await bench.take(worker, 1)] == [b"quick"]
        assert await bench.counts() == {"in_flight": 1, "scheduled": 1}

    async def test_another_worker_may_make_the_next_attempt(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        await worker.settle([bench.retry(delivery)])
        other = await bench.worker()
        again = await bench.take_one(other)

        assert (again.message.id, again.failures) == (delivery.message.id, 1)
        assert [answer.status for answer in await other.settle([Settlement(again)])] == ["done"]

    async def test_a_retry_does_not_change_key_or_expiry(self, bench: Bench) -> None:
        worker = await bench.worker()
        expires_at = bench.clock.now() + timedelta(hours=1)
        sent = Message("", bench.queue, b"1", key=b"\x00", expires_at=expires_at)
        await bench.broker.publish(bench.queue, [sent])
        await worker.settle([bench.retry(await bench.take_one(worker))])
        message = (await bench.take_one(worker)).message

        assert (message.key, message.expires_at) == (b"\x00", expires_at)
