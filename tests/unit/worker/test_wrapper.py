import os
from datetime import timedelta
from typing import Any

import pytest
from celery.exceptions import Ignore, Retry

from redrive.core.errors import DeadLetterError, DeadLetterQueueClosed, DeadLetterQueueFull
from redrive.core.event import BrokerFaulted, HandlerFailed, LetterRefused, LetterWritten
from redrive.core.message import Message
from redrive.core.outcome import GiveUp, RetryLater
from redrive.core.policy import RetryPolicy
from redrive.core.ports import DeadLetterQueue
from redrive.core.reason import Reason
from redrive.testing.queues import RecordingDeadLetterQueue
from tests.unit.worker.wrapper_bench import START, Bench, Broken, out_of_stock, out_of_stock_sync, recovering

# ------------------------------------------------------------------------------------------ retries and giving up


async def test_a_handler_that_succeeds_returns_its_result_and_nothing_is_written() -> None:
    bench = Bench()

    assert await bench.wrap(recovering(0))(b"7") == "charged"
    assert bench.letters.count == 0
    assert bench.events == []


async def test_by_default_there_are_three_retries_one_second_apart() -> None:
    bench = Bench()

    await bench.wrap(out_of_stock)(b"7")

    assert bench.clock.slept == [1, 1, 1]
    assert bench.letters.last.retry_count == 4
    assert bench.letters.last.reason == Reason.ATTEMPTS_EXHAUSTED


@pytest.mark.parametrize(
    ("retry", "delays"),
    [(2, [1, 1]), ([1, 2, 4], [1, 2, 4]), (RetryPolicy(2, jitter="none"), [1, 2]), (0, []), ([], [])],
)
async def test_a_number_is_of_retries_one_second_apart_and_the_rest_is_as_everywhere(
    retry: Any, delays: list[float]
) -> None:
    bench = Bench(retry=retry)

    await bench.wrap(out_of_stock)(b"7")

    assert bench.clock.slept == delays
    assert bench.letters.count == 1


async def test_an_attempt_that_succeeds_after_failures_returns_its_result() -> None:
    bench = Bench(retry=[1, 2, 4])

    assert await bench.wrap(recovering(2))(b"7") == "charged"
    assert bench.clock.slept == [1, 2]
    assert bench.letters.count == 0
    assert [event.retry_in for event in bench.told(HandlerFailed)] == [1, 2]


async def test_a_letter_tells_the_whole_story() -> None:
    bench = Bench(retry=[1], context=["id"])

    await bench.wrap(out_of_stock)({"id": 7})

    letter = bench.letters.last
    assert letter.queue == "orders"
    assert letter.payload == b'{"id":7}'
    assert (letter.error_type, letter.error_message) == ("RuntimeError", "no stock")
    assert letter.handler.endswith(".out_of_stock")
    assert [attempt.number for attempt in letter.attempts] == [1, 2]
    assert letter.context == {"id": 7}
    assert letter.stack is None
    assert letter.pid == os.getpid()
    assert bench.told(LetterWritten) == [LetterWritten(at=START + timedelta(seconds=1), queue="orders", letter=letter)]


async def test_a_stack_is_kept_if_asked_for() -> None:
    bench = Bench(retry=0, stack=True)

    await bench.wrap(out_of_stock)(b"7")

    assert "in out_of_stock" in (bench.letters.last.stack or "")


async def test_give_up_and_retry_later_are_obeyed() -> None:
    bench = Bench(retry=[1])
    outcomes: list[Exception] = [RetryLater("20s"), GiveUp("no customer", code="no_customer")]

    @bench.wrap
    async def charge(_: object) -> None:
        raise outcomes.pop(0)

    await charge(b"7")

    assert bench.clock.slept == [20]
    assert bench.letters.last.reason == Reason.REJECTED
    assert bench.letters.last.error_code == "no_customer"


async def test_a_server_that_asks_for_an_hour_gets_thirty_seconds() -> None:
    bench = Bench(retry=1)

    class Busy(Exception):
        retry_after = 3600

    @bench.wrap
    async def charge(_: object) -> None:
        raise Busy

    await charge(b"7")
    assert bench.clock.slept == [30]


async def test_an_expired_message_is_given_up_without_running() -> None:
    expired = Message("m1", "orders", b"7", expires_at=START - timedelta(seconds=1))
    bench = Bench()
    ran: list[Message] = []

    @bench.wrap
    async def charge(message: Message) -> None:
        ran.append(message)

    await charge(expired)

    assert ran == []
    assert bench.letters.last.reason == Reason.EXPIRED


async def test_no_attempt_starts_beyond_the_budget() -> None:
    bench = Bench(retry=RetryPolicy(9, jitter="none", budget="5s"))

    await bench.wrap(out_of_stock)(b"7")

    assert bench.clock.slept == [1, 2]
    assert bench.letters.last.reason == Reason.DEADLINE


@pytest.mark.parametrize("control", [Retry("later"), Ignore()], ids=["retry", "ignore"])
async def test_exceptions_meant_for_the_framework_pass_through_at_once(control: Exception) -> None:
    bench = Bench()

    @bench.wrap
    async def charge(_: object) -> None:
        raise control

    with pytest.raises(type(control)):
        await charge(b"7")
    assert bench.clock.slept == []
    assert bench.letters.count == 0


# ------------------------------------------------------------------------------------------ the queue says no


async def test_a_letter_that_cannot_be_written_raises_from_the_original() -> None:
    bench = Bench(Broken(), retry=0)

    with pytest.raises(DeadLetterError, match="no route to the queue for orders") as raised:
        await bench.wrap(out_of_stock)(b"7")

    assert str(raised.value.__cause__) == "no stock"
    assert [event.dropped for event in bench.told(LetterRefused)] == [False]
    assert bench.told(LetterWritten) == []


def test_a_letter_that_cannot_be_written_raises_from_the_original_for_a_sync_handler_too() -> None:
    with pytest.raises(DeadLetterError, match="no route to the queue for orders") as raised:
        Bench(Broken(), retry=0).wrap(out_of_stock_sync)(b"7")

    assert str(raised.value.__cause__) == "no stock"


async def test_a_full_queue_is_named_as_such() -> None:
    bench = Bench(RecordingDeadLetterQueue(capacity=0), retry=0)

    with pytest.raises(DeadLetterQueueFull) as raised:
        await bench.wrap(out_of_stock)(b"7")
    assert str(raised.value.__cause__) == "no stock"


# ------------------------------------------------------------------------------------------ messages and letters


async def test_the_payload_is_what_came_in_even_if_the_handler_changes_it() -> None:
    bench = Bench(retry=[1])

    @bench.wrap
    async def charge(order: dict[str, int]) -> None:
        order.clear()
        raise RuntimeError("no stock")

    await charge({"id": 7})
    assert bench.letters.last.payload == b'{"id":7}'


async def test_what_the_rule_raises_is_raised_and_the_handler_does_not_run() -> None:
    bench = Bench(message=lambda args, _: args[5])
    ran: list[object] = []

    @bench.wrap
    async def charge(order: object) -> None:
        ran.append(order)

    with pytest.raises(IndexError):
        await charge(b"7")
    assert ran == []


async def test_a_message_with_an_id_has_one_letter_however_often_it_fails() -> None:
    bench = Bench(retry=0, message=lambda args, _: Message("m1", "", args[0]))
    charge = bench.wrap(out_of_stock)

    await charge(b"7")
    await charge(b"7")
    bench.wrap(out_of_stock_sync)(b"7")

    first, again, other_handler = (letter.letter_id for letter in bench.letters.events)
    assert first == again
    assert first != other_handler


async def test_messages_without_an_id_never_share_a_letter() -> None:
    bench = Bench(retry=0)
    charge = bench.wrap(out_of_stock)

    await charge(b"7")
    await charge(b"7")

    assert len({letter.letter_id for letter in bench.letters.events}) == 2


def redriven(dlq: DeadLetterQueue | None = None) -> Bench:
    marks: Any = {"rd-letter": "letter-1", "rd-generation": "2", "rd-queue": "orders", "rd-origin": "m0"}
    return Bench(dlq, retry=[1], message=lambda args, _: Message("m9", "", args[0], marks))


async def test_the_success_of_a_redriven_message_is_reported() -> None:
    bench = redriven()

    assert await bench.wrap(recovering(1))(b"7") == "charged"

    (report,) = bench.letters.reports
    assert report.succeeded
    assert (report.letter_id, report.generation) == ("letter-1", 2)
    assert (report.queue, report.message_id, report.attempts) == ("orders", "m9", 2)


def test_the_success_of_a_redriven_message_is_reported_by_a_sync_handler_too() -> None:
    bench = redriven()

    assert bench.wrap(len)(b"7") == 1
    assert [report.letter_id for report in bench.letters.reports] == ["letter-1"]


async def test_the_failure_of_a_redriven_message_reopens_its_letter() -> None:
    bench = redriven()

    await bench.wrap(out_of_stock)(b"7")

    letter = bench.letters.last
    assert (letter.letter_id, letter.generation) == ("letter-1", 2)
    assert letter.original_message_id == "m0"
    assert bench.letters.reports == ()


async def test_a_report_that_fails_does_not_undo_the_success() -> None:
    bench = redriven(Broken())

    assert await bench.wrap(recovering(0))(b"7") == "charged"
    assert [event.call for event in bench.told(BrokerFaulted)] == ["report"]


async def test_after_closing_a_letter_is_refused_and_the_message_stays_with_the_framework() -> None:
    bench = Bench(retry=0)
    await bench.wrap.aclose()
    await bench.wrap.aclose()

    with pytest.raises(DeadLetterQueueClosed):
        await bench.wrap(out_of_stock)(b"7")
