from datetime import UTC, datetime, timedelta

import pytest

from redrive.core.delivery import Delivery
from redrive.core.errors import ConfigError
from redrive.core.message import Message
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


def delivery(message_id: str, *, failures: int = 0) -> Delivery:
    return Delivery(Message(message_id, "orders", b""), "shop", datetime.now(UTC), failures=failures)


def test_twenty_signs_from_five_messages_count_their_retries() -> None:
    breaker = Breaker(BreakerRules())

    handed_back = [breaker.failed(f"m{number % 5}", again=number >= 5) for number in range(20)]

    assert handed_back == [False] * 19 + [True]


def test_retries_that_fail_are_no_outage_while_first_attempts_go_well() -> None:
    breaker = Breaker(BreakerRules())
    for number in range(100):
        breaker.succeeded(9)
        breaker.failed(f"m{number}")
    for number in range(1000):
        breaker.failed(f"m{number % 100}", again=True)

    assert not breaker.is_open


def test_retries_that_fail_are_an_outage_where_they_are_all_there_is() -> None:
    breaker = Breaker(BreakerRules())

    handed_back = [breaker.failed(f"m{number}", again=True) for number in range(20)]

    assert handed_back == [False] * 19 + [True]


def test_failures_that_are_no_sign_of_an_outage_do_not_open_it_below_the_bar_of_a_storm() -> None:
    breaker = Breaker(BreakerRules())

    for number in range(1000):
        breaker.succeeded()
        for attempt in range(4):
            breaker.erred(f"m{number}", again=attempt > 0)

    assert not breaker.is_open


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


def test_failures_that_have_left_the_window_count_no_more() -> None:
    breaker = Breaker(BreakerRules(window=100))
    for number in range(19):
        breaker.failed(f"early{number}")
    breaker.succeeded(60)
    for number in range(40):
        breaker.failed(f"late{number}")

    assert not breaker.is_open  # 40 of the last 100, for the window has moved on
    for number in range(10):
        breaker.failed(f"latest{number}")
    assert breaker.why == "50 of the last 100 attempts fail transiently, 50 messages"


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


def test_failed_probes_of_messages_that_failed_before_do_not_set_back_the_good_ones() -> None:
    breaker = opened()
    breaker.probe()

    assert not breaker.succeeded()
    assert breaker.failed("bad", again=True)
    assert not breaker.succeeded()
    breaker.erred("bad too")
    assert breaker.succeeded()


def test_after_a_success_the_waits_begin_anew() -> None:
    breaker = opened()
    breaker.probe()
    for _ in range(8):
        breaker.failed("probe")
    breaker.succeeded()

    breaker.erred("bad")

    assert breaker.probe_delay == timedelta(seconds=1)


def test_a_storm_of_failures_that_are_no_sign_of_an_outage_opens_it_at_a_higher_bar() -> None:
    breaker = Breaker(BreakerRules())

    open_after = []
    for number in range(50):
        breaker.erred(f"m{number}")
        open_after.append(breaker.is_open)

    assert open_after == [False] * 49 + [True]
    assert breaker.why == "50 of the last 50 messages fail at their first attempt"


def test_failures_of_every_kind_make_a_storm() -> None:
    breaker = Breaker(BreakerRules())

    for number in range(49):
        if number % 5 < 2:
            assert not breaker.failed(f"m{number}")
        else:
            breaker.erred(f"m{number}")

    assert breaker.failed("m49")
    assert breaker.is_open


def test_retries_make_no_storm() -> None:
    breaker = Breaker(BreakerRules())

    for number in range(1000):
        breaker.erred(f"m{number}", again=True)

    assert not breaker.is_open


def test_a_probe_is_rather_a_message_that_has_not_failed() -> None:
    breaker = opened()

    assert breaker.choose([delivery("a", failures=1), delivery("b"), delivery("c")]).message.id == "b"


def test_a_message_that_was_a_probe_in_vain_lets_the_others_go_first() -> None:
    breaker = opened()
    breaker.probe()
    found = [delivery("a"), delivery("b"), delivery("c", failures=1)]

    chosen = []
    for _ in range(5):
        chosen.append(breaker.choose(found).message.id)
        breaker.failed(chosen[-1])

    assert chosen == ["a", "b", "c", "a", "b"]


def test_the_more_probes_were_in_vain_the_more_messages_are_looked_at_up_to_five_hundred() -> None:
    breaker = opened()
    breaker.probe()

    reached = [breaker.reach]
    for number in range(1000):
        breaker.failed(f"m{number}")
        reached.append(breaker.reach)

    assert reached[:3] == [10, 11, 12]
    assert max(reached) == reached[-1] == 500


def test_every_mistake_in_the_rules_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        BreakerRules(outcomes=0, share=2, probe=timedelta(0))

    assert [mistake.partition(":")[0] for mistake in caught.value.mistakes] == [
        "breaker.outcomes",
        "breaker.share",
        "breaker.probe",
    ]
