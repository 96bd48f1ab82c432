"""Settling: every outcome is carried out once, and only by whoever holds the message."""

from datetime import timedelta

import pytest

from redrive.core.duration import NOW
from redrive.core.message import Message
from redrive.core.outcome import ACK, GiveUp, Outcome, RetryLater, Settlement, SettleStatus
from redrive.testing.conformance.bench import Bench
from redrive.testing.conformance.suite import Suite


class Settling(Suite):
    """`Subscription.settle`."""

    async def test_settle_gives_one_answer_per_item_in_order(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"1", b"2", b"3", b"4")
        first, second, third, fourth = await bench.take(worker, 4)
        await worker.release([third])
        answers = await worker.settle(
            [
                Settlement(first),
                bench.retry(second, timedelta(seconds=5)),
                bench.retry(third),
                bench.give_up(fourth, worker),
            ]
        )

        assert [answer.status for answer in answers] == ["done", "done", "lost", "done"]
        assert [answer.due_at is not None for answer in answers] == [False, True, False, False]

    async def test_settling_nothing_gives_no_answers(self, bench: Bench) -> None:
        assert list(await (await bench.worker()).settle([])) == []

    async def test_a_bare_delivery_is_a_plain_success(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"1", b"2", b"3")
        first, second, third = await bench.take(worker, 3)
        mixed = await worker.settle([first, bench.retry(second, timedelta(seconds=5))])
        alone = await worker.settle([third])

        assert [answer.status for answer in (*mixed, *alone)] == ["done", "done", "done"]
        assert [answer.status for answer in await worker.settle([third])] == ["repeated"]
        assert await bench.counts() == {"scheduled": 1}

    async def test_an_acked_message_is_gone(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        await worker.settle([Settlement(delivery)])
        await bench.let_die(seen_by=worker)

        assert await bench.counts() == {}
        assert await bench.nothing_for(worker)
        assert await worker.fetch_suspect() is None

    @pytest.mark.parametrize("outcome", [ACK, RetryLater(60), GiveUp()], ids=["ack", "retry", "give up"])
    async def test_a_settlement_sent_twice_is_repeated_and_done_once(self, bench: Bench, outcome: Outcome) -> None:
        worker, delivery = await bench.one_delivery()
        letter = bench.letter(delivery, incarnation=worker.incarnation)
        item = Settlement(delivery, outcome, attempt=bench.attempt(delivery), letter=letter)
        (first,) = await worker.settle([item])
        after_first = await bench.counts()
        (second,) = await worker.settle([item])

        assert (first.status, second.status) == (SettleStatus.DONE, SettleStatus.REPEATED)
        assert second.due_at == first.due_at
        assert await bench.counts() == after_first

    async def test_an_item_that_stands_twice_in_one_call_is_done_once(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        item = bench.give_up(delivery, worker)
        answers = await worker.settle([item, item])

        assert [answer.status for answer in answers] == ["done", "repeated"]
        assert await bench.counts() == {"dead": 1}

    async def test_an_output_is_not_published_again_when_the_ack_is_repeated(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        invoices = await bench.worker(queue=bench.beside("invoices"))
        item = Settlement(delivery, output=Message("", bench.beside("invoices"), b"invoice"))
        await worker.settle([item])
        await worker.settle([item])

        assert (await bench.take_one(invoices)).message.body == b"invoice"
        assert await bench.nothing_for(invoices)

    async def test_a_retry_repeated_after_the_message_was_taken_again_changes_nothing(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        item = bench.retry(delivery)
        await worker.settle([item])
        again = await bench.take_one(worker)
        (repeated,) = await worker.settle([item])

        assert repeated.status in {SettleStatus.REPEATED, SettleStatus.LOST}
        assert await bench.counts() == {"in_flight": 1}
        assert [answer.status for answer in await worker.settle([Settlement(again)])] == ["done"]

    @pytest.mark.parametrize("outcome", [ACK, RetryLater(0), GiveUp()], ids=["ack", "retry", "give up"])
    async def test_a_lost_delivery_can_do_nothing(self, bench: Bench, outcome: Outcome) -> None:
        worker, delivery = await bench.one_delivery()
        other = await bench.worker()
        await bench.let_die(seen_by=other)
        taken = await bench.suspect(other)
        output = bench.beside("invoices")
        item = Settlement(
            delivery,
            outcome,
            attempt=bench.attempt(delivery),
            trail=b"[]",
            letter=bench.letter(delivery, incarnation=worker.incarnation),
            output=Message("", output, b"invoice"),
            report=bench.report(delivery, succeeded=True),
        )
        (answer,) = await worker.settle([item])
        await worker.release([delivery])
        written = {queue for queue, _ in await bench.broker.queues()} & {output, bench.outcomes}

        assert answer.status is SettleStatus.LOST
        assert [lost.message.id for lost in await worker.extend([delivery])] == [delivery.message.id]
        assert written == set()
        assert await bench.counts() == {"in_flight": 1}
        assert [done.status for done in await other.settle([Settlement(taken)])] == ["done"]

    async def test_a_settled_delivery_is_not_settled_otherwise(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        await worker.settle([Settlement(delivery)])
        answers = await worker.settle([bench.retry(delivery), bench.give_up(delivery, worker)])

        assert {answer.status for answer in answers} <= {SettleStatus.REPEATED, SettleStatus.LOST}
        assert await bench.counts() == {}

    async def test_one_bad_item_never_fails_the_others(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(*(b"%d" % number for number in range(6)))
        taken = await bench.take(worker, 6)
        bad = [
            Settlement(taken[1], GiveUp()),
            Settlement(taken[3], RetryLater()),
            Settlement(taken[5], output=Message("", "no such\nname", b"")),
        ]
        good = [
            Settlement(taken[0]),
            bench.retry(taken[2], timedelta(seconds=60)),
            bench.give_up(taken[4], worker),
        ]
        answers = await worker.settle([item for pair in zip(good, bad, strict=True) for item in pair])

        assert [answer.status for answer in answers] == ["done", "refused"] * 3
        assert all(answer.why for answer in answers[1::2])
        assert await bench.counts() == {"in_flight": 3, "scheduled": 1, "dead": 1}

    async def test_a_refused_message_is_where_it_was(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        await worker.settle([Settlement(delivery, GiveUp())])

        assert [answer.status for answer in await worker.settle([Settlement(delivery)])] == ["done"]
        assert await bench.counts() == {}

    async def test_a_delivery_of_another_group_is_lost_here(self, bench: Bench) -> None:
        ours, theirs = await bench.worker(), await bench.worker(group="audit")
        await bench.publish(b"1")
        delivery = await bench.take_one(theirs)
        (answer,) = await ours.settle([Settlement(delivery)])

        assert answer.status is SettleStatus.LOST
        assert await bench.counts(group="audit") == {"in_flight": 1}
        assert await bench.counts() == {"waiting": 1}

    async def test_an_ack_publishes_its_output_in_the_same_step(self, bench: Bench) -> None:
        worker, delivery = await bench.one_delivery()
        target = bench.beside("invoices")
        output = Message("", target, b"\xff", headers=(("rd-letter", b"forged"), ("colour", b"red")), key=b"k")
        await worker.settle([Settlement(delivery, output=output)])
        message = (await bench.take_one(await bench.worker(queue=target))).message

        assert (message.body, message.headers, message.key) == (b"\xff", (("colour", b"red"),), b"k")

    async def test_five_hundred_outcomes_are_one_call(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(*(b"%d" % number for number in range(500)))
        taken = await bench.take(worker, 500)

        assert {answer.status for answer in await worker.settle([Settlement(each) for each in taken])} == {"done"}
        assert not await worker.fetch(1, wait=NOW)
        assert await bench.counts() == {}
