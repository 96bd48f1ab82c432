from datetime import timedelta

import pytest

from redrive.core.errors import ConfigError
from redrive.worker.breaker import Breaker, BreakerRules


def opened(rules: BreakerRules | None = None) -> Breaker:
    breaker = Breaker(rules or BreakerRules())
    for number in range(20):
        breaker.failed(f"m{number}")
    assert breaker.is_open
    return breaker


def test_twenty_transient_failures_of_five_messages_open_it() -> None:
    breaker = Breaker(BreakerRules())

    handed_back = [breaker.failed(f"m{number % 5}") for number in range(20)]

    assert handed_back == [False] * 19 + [True]
    assert breaker.why == "20 of the last 20 attempts fail transiently, 5 messages"


def test_four_messages_that_fail_are_not_an_outage() -> None:
    breaker = Breaker(BreakerRules())

    for number in range(200):
        breaker.failed(f"m{number % 4}")

    assert not breaker.is_open


def test_fewer_than_half_failing_is_not_an_outage() -> None:
    breaker = Breaker(BreakerRules())

    for number in range(200):
        breaker.succeeded(2)
        breaker.failed(f"m{number}")

    assert not breaker.is_open


def test_only_the_latest_outcomes_count() -> None:
    breaker = Breaker(BreakerRules(window=100))
    breaker.succeeded(100_000)

    for number in range(50):
        breaker.failed(f"m{number}")

    assert breaker.is_open


def test_it_closes_after_three_successful_probes_in_a_row() -> None:
    breaker = opened()
    breaker.probe()

    assert not breaker.succeeded()
    assert not breaker.succeeded()
    assert breaker.failed("again")  # handed back, and the count starts anew
    assert [breaker.succeeded() for _ in range(3)] == [False, False, True]
    assert not breaker.is_open


def test_outcomes_of_what_was_running_when_it_opened_are_no_probes() -> None:
    breaker = opened()

    breaker.succeeded(3)
    for number in range(50):
        breaker.failed(f"late{number}")

    assert breaker.is_open
    assert breaker.probe_delay == timedelta(seconds=1)


def test_probes_grow_apart_up_to_the_longest_and_follow_at_once_after_a_success() -> None:
    breaker = opened()
    breaker.probe()

    seen = []
    for _ in range(8):
        seen.append(breaker.probe_delay.total_seconds())
        breaker.failed("probe")
    breaker.succeeded()

    assert seen == [1, 2, 4, 8, 16, 32, 60, 60]
    assert breaker.probe_delay == timedelta(0)


def test_a_storm_of_permanent_failures_opens_it_at_a_higher_bar() -> None:
    breaker = Breaker(BreakerRules())

    open_after = []
    for number in range(50):
        breaker.rejected(f"m{number}")
        open_after.append(breaker.is_open)

    assert open_after == [False] * 49 + [True]
    assert "fail for good" in str(breaker.why)


def test_every_mistake_in_the_rules_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        BreakerRules(outcomes=0, share=2, probe=timedelta(0))

    assert [mistake.partition(":")[0] for mistake in caught.value.mistakes] == [
        "breaker.outcomes",
        "breaker.share",
        "breaker.probe",
    ]
