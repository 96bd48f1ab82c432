"""What the breaker hears of how handlers end."""

from datetime import UTC, datetime
from random import Random

from redrive.clock import SystemClock
from redrive.core.delivery import Delivery
from redrive.core.letter import Source
from redrive.core.message import Message
from redrive.core.outcome import RetryLater, Settlement
from redrive.core.reason import Reason
from redrive.observe.bus import Bus
from redrive.worker.breaker import Breaker, BreakerRules
from redrive.worker.consumer import Consumer, Treatment
from redrive.worker.outcomes import Outcomes, Release, Surroundings


def outcomes(breaker: Breaker) -> Outcomes:
    return Outcomes(
        Consumer("orders", print, Treatment()),
        source=Source(broker="memory", incarnation="1"),
        around=Surroundings(SystemClock(), Bus(), Random(1)),
        breaker=breaker,
        opened=lambda: None,
    )


def delivery(number: int, *, failures: int = 0) -> Delivery:
    return Delivery(Message(str(number), "orders", b""), "shop", datetime.now(UTC), failures=failures)


def test_the_breaker_counts_successes_that_are_not_settled_yet() -> None:
    breaker = Breaker(BreakerRules(outcomes=20, share=0.5))
    ending = outcomes(breaker)

    ends = [
        ending.failure(delivery(number), ConnectionError(), took=0.0)
        if number % 10 == 0
        else ending.success(delivery(number))
        for number in range(1000)
    ]

    assert not breaker.is_open
    assert not any(isinstance(end, Release) for end in ends)


def test_successes_told_with_a_settle_call_close_the_breaker() -> None:
    breaker = Breaker(BreakerRules(outcomes=5, messages=5, successes=3))
    ending = outcomes(breaker)
    for number in range(5):
        ending.failure(delivery(number), ConnectionError(), took=0.0)
    breaker.probe()
    for number in range(3):
        ending.success(delivery(number))

    assert breaker.is_open
    assert [ending.tell_breaker(), ending.tell_breaker()] == [True, False]
    assert breaker.why is None


def test_a_failure_that_no_rule_knows_spends_its_attempt_while_the_breaker_is_open() -> None:
    breaker = Breaker(BreakerRules(outcomes=5, messages=5))
    ending = outcomes(breaker)
    for number in range(5):
        ending.failure(delivery(number), ConnectionError(), took=0.0)
    breaker.probe()

    bad = ending.failure(delivery(6), ValueError(), took=0.0)
    away = ending.failure(delivery(7), ConnectionError(), took=0.0)

    assert isinstance(bad, Settlement)
    assert isinstance(bad.outcome, RetryLater)
    assert isinstance(away, Release)


def test_the_last_failure_of_a_bad_message_is_its_letter_while_the_breaker_is_open() -> None:
    breaker = Breaker(BreakerRules(outcomes=5, messages=5))
    ending = outcomes(breaker)
    for number in range(5):
        ending.failure(delivery(number), ConnectionError(), took=0.0)
    breaker.probe()

    end = ending.failure(delivery(6, failures=3), ValueError(), took=0.0)

    assert isinstance(end, Settlement)
    assert end.letter is not None
    assert end.letter.reason is Reason.ATTEMPTS_EXHAUSTED


def test_nine_of_ten_failures_that_no_rule_knows_are_a_storm() -> None:
    breaker = Breaker(BreakerRules())
    ending = outcomes(breaker)

    for number in range(50):
        if number % 10:
            ending.failure(delivery(number), ValueError(), took=0.0)
        else:
            ending.success(delivery(number))

    assert breaker.is_open


def test_a_retry_that_the_handler_asks_for_is_no_failure_to_the_breaker() -> None:
    breaker = Breaker(BreakerRules())
    ending = outcomes(breaker)

    for number in range(1000):
        ending.failure(delivery(number), RetryLater(1), took=0.0)

    assert not breaker.is_open
