"""What is kept of a message that fails: its trail from attempt to attempt, and its letter."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from redrive.clock import SystemClock
from redrive.core.context import ContextRule
from redrive.core.delivery import Delivery
from redrive.core.event import BatchSettled, Event
from redrive.core.failure import Failure
from redrive.core.letter import DeadLetter, Source
from redrive.core.message import Message
from redrive.core.outcome import DONE, LOST, REPEATED, Settled, Settlement, SettleStatus
from redrive.core.place import DeadLetterPlace
from redrive.core.privacy import PrivacyFilter
from redrive.core.wire import from_fields, to_fields
from redrive.observe.bus import Bus
from redrive.worker.account import Account, Place
from redrive.worker.consumer import Consumer, Treatment
from redrive.worker.outcomes import Outcomes, Surroundings

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Bench:
    """A message that fails again and again, settled by hand."""

    def __init__(self, **options: Any) -> None:
        self.events: list[Event] = []
        self.around = Surroundings(SystemClock(), Bus(self.events.append), Random(1))
        self.outcomes = Outcomes(
            Consumer("orders", print, Treatment.of({"retry": [1, 2], **options})),
            source=Source(broker="memory", incarnation="1", node="web-1"),
            around=self.around,
            breaker=None,
            opened=lambda: None,
        )
        self.delivery = Delivery(Message("1", "orders", b""), "shop", AT)

    def fail(self, error: BaseException, *, took: float = 0.5) -> Settlement:
        end = self.outcomes.failure(self.delivery, error, took=took)
        assert isinstance(end, Settlement)
        self.delivery = self.delivery._replace(failures=self.delivery.failures + 1, trail=end.trail)
        return end

    def fail_for_good(self, *errors: BaseException) -> DeadLetter:
        letters = [self.fail(error).letter for error in errors]
        assert letters[-1] is not None
        assert letters[:-1] == [None] * (len(errors) - 1)
        return letters[-1]


def raised(error: Exception) -> Exception:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def test_every_attempt_is_in_the_letter_the_last_in_full() -> None:
    long = "x" * 5000
    letter = Bench().fail_for_good(ValueError("one"), KeyError("two"), raised(TypeError(long)))

    assert [(attempt.number, attempt.error_type) for attempt in letter.attempts] == [
        (1, "ValueError"),
        (2, "KeyError"),
        (3, "TypeError"),
    ]
    assert [attempt.error_message for attempt in letter.attempts] == ["one", "'two'", long]
    assert all(attempt.ended_at - attempt.started_at == timedelta(seconds=0.5) for attempt in letter.attempts)
    assert {attempt.node for attempt in letter.attempts} == {"web-1"}
    assert (letter.retry_count, letter.first_failed_at) == (3, letter.attempts[0].ended_at)
    assert from_fields(to_fields(letter), b"") == letter


def test_a_long_text_is_cut_once_another_attempt_follows() -> None:
    letter = Bench().fail_for_good(*[ValueError("x" * 5000) for _ in range(3)])

    assert [len(attempt.error_message) > 200 for attempt in letter.attempts] == [False, False, True]
    assert from_fields(to_fields(letter), b"") == letter


def test_a_letter_says_what_failed_last_and_where() -> None:
    error = raised(ValueError("order 7"))
    letter = Bench(stack=True).fail_for_good(KeyError(), KeyError(), error)

    assert letter.fingerprint == Failure.of(error).fingerprint
    assert letter.stack is not None
    assert "in raised" in letter.stack
    assert letter.failed_at == letter.attempts[-1].ended_at


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "password=hunter2"),
        ({}, "cannot reach redis://shop:hunter2@cache"),
        ({"context": ContextRule(privacy=PrivacyFilter(patterns=("hunter[0-9]",)))}, "the word is hunter2"),
    ],
    ids=["a password", "a URL", "a pattern of the user's own"],
)
def test_no_secret_leaves_the_worker_with_the_trail(options: dict[str, Any], text: str) -> None:
    bench = Bench(**options)
    first = bench.fail(ValueError(text))
    letter = bench.fail_for_good(ValueError(text), ValueError(text))

    assert first.attempt is not None
    assert "***" in first.attempt.error_message
    assert b"hunter2" not in first.trail
    assert "hunter2" not in repr(letter)
    assert letter.fingerprint == Failure.of(ValueError(text)).fingerprint


def settled(bench: Bench, *pairs: tuple[Settlement, Settled], unheard: bool = False) -> BatchSettled:
    account = Account(Place("memory", "orders", "shop", DeadLetterPlace()), bench.around)
    acked = account.settled([item for item, _ in pairs], [answer for _, answer in pairs], unheard=unheard)
    told = bench.events[-1]
    assert isinstance(told, BatchSettled)
    assert told.acked == acked
    return told


def test_retries_are_told_with_the_settle_call_that_carried_them_out() -> None:
    bench = Bench()
    first, second = bench.fail(ValueError()), bench.fail(KeyError())
    ack = Settlement(bench.delivery)
    told = settled(bench, (first, DONE._replace(due_at=AT)), (ack, DONE), (second, REPEATED), (ack, DONE))

    assert (told.acked, told.retried, told.repeated, told.dead) == (2, 1, 1, 0)
    assert [(failed.message_id, failed.attempt, failed.error_type, failed.retry_in) for failed in told.failures()] == [
        ("1", 1, "ValueError", 1.0),
        ("1", 2, "KeyError", 2.0),
    ]
    assert [failed.why for failed in told.failures()] == [str(first.outcome), str(second.outcome)]


def test_a_retry_that_was_not_carried_out_is_not_told() -> None:
    bench = Bench()
    end = bench.fail(ValueError())

    assert [*settled(bench, (end, LOST), (end, Settled(SettleStatus.REFUSED, "full"))).failures()] == []


def test_a_letter_is_told_and_not_as_a_retry() -> None:
    bench = Bench(retry=0)
    told = settled(bench, (bench.fail(ValueError()), DONE))

    assert (told.dead, [*told.failures()]) == (1, [])
    assert [type(event) for event in bench.events] == [BatchSettled]
    assert [(event.at, event.queue, event.group, event.letter) for event in told.written()] == [
        (told.at, "orders", "shop", told.letters[0])
    ]


def test_a_letter_that_was_not_written_by_this_call_is_not_told() -> None:
    # what is repeated at the first call was done by somebody else's, and told by them
    bench = Bench(retry=0)
    end = bench.fail(ValueError())
    told = settled(bench, (end, LOST), (end, REPEATED), (end, Settled(SettleStatus.REFUSED, "full")))

    assert (told.lost, told.repeated, told.refused, told.dead) == (1, 1, 1, 0)
    assert [*told.written()] == []


def test_what_an_earlier_call_did_unheard_is_told_once_by_the_one_that_repeats_it() -> None:
    bench = Bench(retry=[1])
    again, dead = bench.fail(ValueError()), bench.fail(ValueError())
    ack, due = Settlement(bench.delivery), REPEATED._replace(due_at=AT)
    told = settled(bench, (again, due), (dead, REPEATED), (ack, REPEATED), (dead, LOST), (dead, DONE), unheard=True)

    assert (told.acked, told.retried, told.dead, told.repeated, told.lost) == (1, 1, 2, 0, 1)
    assert [event.letter for event in told.written()] == [dead.letter, dead.letter]
    assert len([*told.failures()]) == 1
