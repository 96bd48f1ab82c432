from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.backoff import Additive, Constant, Exponential, Jitter, Table
from redrive.core.classify import Classifier
from redrive.core.delivery import Delivery
from redrive.core.errors import ConfigError
from redrive.core.message import Message
from redrive.core.outcome import GiveUp, RetryLater
from redrive.core.policy import REMEMBERED, Decision, Decisions, RetryPolicy, decide, decide_start
from redrive.core.reason import Reason

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
EXACT = RetryPolicy.of([1, 2, 4])


class Unspeakable(Exception):
    """An exception that cannot be turned into text."""

    def __str__(self) -> str:
        raise RuntimeError


class Limited(Exception):
    """An answer of 429 that says when to come back."""

    def __init__(self, retry_after: object) -> None:
        self.status = 429
        self.retry_after = retry_after


def delivery(*, expires_at: datetime | None = None, **fields: Any) -> Delivery:
    message = Message(id="1", queue="orders", body=b"{}", expires_at=expires_at)
    return Delivery(**{"message": message, "group": "shop", "received_at": AT, **fields})


def ask(policy: RetryPolicy, error: BaseException, given: Delivery | None = None, *, now: datetime = AT) -> Decision:
    return decide(policy, error, delivery=given or delivery(), now=now, random=Random(1))


def start(policy: RetryPolicy, given: Delivery, *, now: datetime = AT) -> Decision | None:
    return decide_start(policy, delivery=given, now=now, crash_limit=3)


def delay_of(decision: Decision) -> float:
    assert isinstance(decision.outcome, RetryLater)
    assert decision.outcome.delay is not None
    return decision.outcome.delay.total_seconds()


def reason_of(decision: Decision | None) -> Reason:
    assert decision is not None
    assert isinstance(decision.outcome, GiveUp)
    return decision.outcome.reason


# ---------------------------------------------------------------------------------------- settings


def test_the_default_is_three_retries_one_second_doubled_to_thirty_with_full_jitter() -> None:
    policy = RetryPolicy()

    assert (policy.max_retries, policy.max_attempts) == (3, 4)
    assert policy.backoff == Exponential(1, multiplier=2, cap=30)
    assert policy.jitter is Jitter.FULL
    assert policy.budget is None


def test_max_attempts_is_the_other_spelling() -> None:
    assert RetryPolicy(max_attempts=4) == RetryPolicy(3) == RetryPolicy(3, max_attempts=4)
    assert RetryPolicy(max_attempts=1).max_retries == 0


def test_durations_and_names_are_read_at_the_edge() -> None:
    policy = RetryPolicy(budget="1h", jitter="equal", told_cap=60)

    assert policy.budget == timedelta(hours=1)
    assert policy.jitter is Jitter.EQUAL
    assert policy.told_cap == timedelta(minutes=1)


def test_every_mistake_is_reported_at_once_with_its_key() -> None:
    wrong: dict[str, Any] = {
        "max_retries": -1,
        "max_attempts": 0,
        "jitter": "lots",
        "budget": -5,
        "told_cap": "400d",
        "backoff": 3,
        "classify": str,
    }

    with pytest.raises(ConfigError) as caught:
        RetryPolicy(**wrong)

    assert {mistake.partition(":")[0] for mistake in caught.value.mistakes} == set(wrong)
    assert all(": expected " in mistake for mistake in caught.value.mistakes)


def test_two_spellings_that_disagree_are_a_mistake() -> None:
    with pytest.raises(ConfigError, match="max_attempts: expected 4 beside max_retries=3, got 3"):
        RetryPolicy(3, max_attempts=3)


@pytest.mark.parametrize("value", [True, 1.0, "3"])
def test_a_number_of_retries_is_a_whole_number(value: Any) -> None:
    with pytest.raises(ConfigError, match="max_retries: expected a whole number of 0 or more"):
        RetryPolicy(value)


def test_a_policy_is_a_value_that_can_be_changed_into_another() -> None:
    policy = RetryPolicy(5, backoff=Constant(2), jitter=Additive("500ms"))

    assert replace(policy, budget=timedelta(minutes=1)) == RetryPolicy(
        5, backoff=Constant(2), jitter=Additive(0.5), budget=timedelta(minutes=1)
    )
    assert hash(policy) == hash(replace(policy))


def test_the_short_forms_stand_for_policies() -> None:
    policy = RetryPolicy(7)

    assert RetryPolicy.of(policy) is policy
    assert RetryPolicy.of(None) == RetryPolicy()
    assert RetryPolicy.of(5) == RetryPolicy(5)
    assert RetryPolicy.of([1, "2s"]) == RetryPolicy(2, backoff=Table([1, 2]), jitter=Jitter.NONE)
    assert RetryPolicy.of(()).max_retries == 0


@pytest.mark.parametrize("spec", [True, "3", b"45", 1.5, {"max_retries": 3}, object], ids=repr)
def test_any_other_form_is_a_mistake(spec: Any) -> None:
    with pytest.raises(ConfigError, match="retry: expected a RetryPolicy, a number of retries, a list of delays"):
        RetryPolicy.of(spec)


def test_a_wrong_delay_in_a_short_form_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match=r"delays\[1\]: expected"):
        RetryPolicy.of([1, "later"])


def test_get_delay_is_the_wait_after_a_failed_attempt_in_seconds() -> None:
    assert [EXACT.get_delay(n) for n in (1, 2, 3, 4)] == [1, 2, 4, 4]
    assert RetryPolicy().get_delay(2000) == 30


def test_should_retry_agrees_with_the_rules_and_the_count() -> None:
    policy = RetryPolicy(classify=Classifier(permanent=[KeyError]))

    assert [policy.should_retry(TimeoutError(), n) for n in (1, 3, 4)] == [True, True, False]
    assert not policy.should_retry(KeyError(), 1)


# ------------------------------------------------------------------------------------------ decide


def test_a_table_is_followed_exactly_and_then_attempts_are_exhausted() -> None:
    decisions = [ask(EXACT, TimeoutError(), delivery(failures=failures)) for failures in range(4)]

    assert [delay_of(decision) for decision in decisions[:3]] == [1, 2, 4]
    assert reason_of(decisions[3]) is Reason.ATTEMPTS_EXHAUSTED
    assert decisions[0].why == "attempt 1 of 4 failed with TimeoutError: retry in 1 s, a network error"
    assert decisions[3].why == "attempt 4 of 4 failed with TimeoutError: attempts exhausted"


def test_the_last_failure_of_an_outage_still_counts_for_the_breaker() -> None:
    assert ask(EXACT, TimeoutError(), delivery(failures=3)).transient


def test_a_permanent_failure_is_rejected_at_once() -> None:
    decision = ask(RetryPolicy(classify=Classifier(permanent=[KeyError])), KeyError("secret"))

    assert reason_of(decision) is Reason.REJECTED
    assert not decision.transient
    assert decision.why == "attempt 1 of 4 failed with KeyError: not retried, KeyError is permanent"


def test_give_up_keeps_its_own_reason_code_and_severity() -> None:
    error = GiveUp("no customer", code="no_customer", reason=Reason.INVALID, severity="high")
    decision = ask(RetryPolicy(), error)

    assert decision.outcome is error
    assert decision.why == "attempt 1 of 4: the handler gave up (no_customer)"
    assert not decision.transient


def test_give_up_raised_in_a_task_group_is_found() -> None:
    error = GiveUp("no customer")

    assert ask(RetryPolicy(), ExceptionGroup("tasks", [error])).outcome is error


def test_retry_later_sets_a_floor_and_spends_an_attempt() -> None:
    first = ask(RetryPolicy(), RetryLater(60, code="not_yet"))
    last = ask(RetryPolicy(), RetryLater(60), delivery(failures=3))

    assert 60 <= delay_of(first) <= 75
    assert isinstance(first.outcome, RetryLater)
    assert first.outcome.code == "not_yet"
    assert reason_of(last) is Reason.ATTEMPTS_EXHAUSTED


def test_retry_later_without_a_delay_leaves_it_to_the_policy() -> None:
    assert delay_of(ask(EXACT, RetryLater(), delivery(failures=1))) == 2


def test_a_told_delay_is_a_floor_with_jitter_on_top() -> None:
    delays = {
        delay_of(decide(RetryPolicy(), Limited("600"), delivery=delivery(), now=AT, random=Random(seed)))
        for seed in range(50)
    }

    assert min(delays) >= 600
    assert max(delays) <= 750
    assert len(delays) == 50


def test_a_told_date_is_measured_from_now() -> None:
    assert delay_of(ask(EXACT, Limited("Sun, 01 Mar 2026 12:00:09 GMT"))) == 9


def test_nobody_can_hide_a_message_for_a_year() -> None:
    assert delay_of(ask(EXACT, Limited(365 * 86400))) == 86400
    assert delay_of(ask(replace(EXACT, told_cap=timedelta(hours=1)), Limited(10**400))) == 3600
    assert delay_of(ask(RetryPolicy(told_cap="1h"), RetryLater("365d"))) <= 4500


def test_a_canary_is_answered_by_its_first_failure() -> None:
    decision = ask(RetryPolicy(), TimeoutError(), delivery(attempts_allowed=1))

    assert reason_of(decision) is Reason.ATTEMPTS_EXHAUSTED
    assert decision.why == "attempt 1 of 1 failed with TimeoutError: attempts exhausted"


def test_attempts_allowed_never_adds_to_the_policy() -> None:
    given = delivery(failures=3, attempts_allowed=10)

    assert reason_of(ask(EXACT, TimeoutError(), given)) is Reason.ATTEMPTS_EXHAUSTED


def test_a_crash_spends_no_retry() -> None:
    decision = ask(EXACT, TimeoutError(), delivery(failures=2, crashes=2))

    assert delay_of(decision) == 4
    assert decision.why.startswith("attempt 5 of 6 failed")


def test_a_retry_beyond_the_budget_is_given_up_for_the_deadline() -> None:
    policy = replace(EXACT, budget=timedelta(seconds=10))
    given = delivery(failures=2, first_attempt_at=AT - timedelta(seconds=7))
    decision = ask(policy, TimeoutError(), given)

    assert reason_of(decision) is Reason.DEADLINE
    assert decision.transient
    assert decision.why == (
        "attempt 3 of 4 failed with TimeoutError: a retry in 4 s would be beyond the budget of 10 s"
    )


def test_a_retry_that_starts_just_within_the_budget_is_made() -> None:
    given = delivery(failures=2, first_attempt_at=AT - timedelta(seconds=6))

    assert delay_of(ask(replace(EXACT, budget=timedelta(seconds=10)), TimeoutError(), given)) == 4


def test_the_budget_of_a_first_attempt_begins_when_it_was_received() -> None:
    policy = RetryPolicy.of([4])
    late = AT + timedelta(seconds=7)

    assert reason_of(ask(replace(policy, budget=timedelta(seconds=10)), TimeoutError(), now=late)) is Reason.DEADLINE
    assert delay_of(ask(replace(policy, budget=timedelta(seconds=11)), TimeoutError(), now=late)) == 4


def test_an_exception_that_cannot_speak_is_decided_about_all_the_same() -> None:
    assert "failed with Unspeakable" in ask(RetryPolicy(), Unspeakable()).why


def test_the_text_of_an_exception_stays_out_of_the_sentence() -> None:
    decision = ask(RetryPolicy(0), ValueError("password=hunter2"))

    assert "hunter2" not in decision.why
    assert "hunter2" not in str(decision.outcome)


# ------------------------------------------------------------------------------------ decide_start


def test_an_attempt_may_start_when_nothing_speaks_against_it() -> None:
    given = delivery(expires_at=AT + timedelta(seconds=1), crashes=2, first_attempt_at=AT - timedelta(seconds=10))

    assert start(RetryPolicy(budget=10), given) is None


def test_an_expired_message_does_not_start() -> None:
    decision = start(RetryPolicy(), delivery(expires_at=AT))

    assert reason_of(decision) is Reason.EXPIRED
    assert decision is not None
    assert decision.why == "the message expired at 2026-03-01T12:00:00+00:00, before it could run"


def test_a_message_that_killed_its_worker_too_often_does_not_start() -> None:
    decision = start(RetryPolicy(), delivery(crashes=3))

    assert reason_of(decision) is Reason.WORKER_CRASH
    assert decision is not None
    assert not decision.transient


def test_an_attempt_does_not_start_after_the_budget() -> None:
    given = delivery(failures=1, first_attempt_at=AT - timedelta(seconds=11))

    assert reason_of(start(RetryPolicy(budget=10), given)) is Reason.DEADLINE


def test_a_first_attempt_is_never_too_late_for_the_budget() -> None:
    given = delivery(received_at=AT - timedelta(hours=1))

    assert start(RetryPolicy(budget=10), given) is None


# -------------------------------------------------------------------------------------- properties

durations = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=365))
instants = st.datetimes(timezones=st.just(UTC))
policies = st.builds(
    RetryPolicy,
    st.integers(min_value=0, max_value=10),
    backoff=st.one_of(
        durations.map(lambda cap: Exponential(min(cap, timedelta(seconds=1)), cap=cap)),
        st.lists(durations, min_size=1, max_size=5).map(Table),
        durations.map(Constant),
    ),
    jitter=st.one_of(st.sampled_from(Jitter), durations.map(Additive)),
    budget=st.none() | durations,
    classify=st.sampled_from([Classifier(), Classifier(permanent=[KeyError])]),
    told_cap=durations,
)
errors = st.one_of(
    st.sampled_from([ValueError(), KeyError(), TimeoutError(), Unspeakable(), KeyboardInterrupt(), GiveUp()]),
    st.one_of(st.none(), durations).map(RetryLater),
    st.one_of(st.floats(), st.integers(), st.text(), instants).map(Limited),
)
deliveries = st.builds(
    delivery,
    received_at=instants,
    failures=st.integers(min_value=0, max_value=3000),
    crashes=st.integers(min_value=0, max_value=10),
    attempts_allowed=st.none() | st.integers(min_value=0, max_value=5),
    first_attempt_at=st.none() | instants,
    expires_at=st.none() | instants,
)


@given(policies, errors, deliveries, instants, st.integers())
def test_decide_answers_for_any_history(
    policy: RetryPolicy, error: BaseException, history: Delivery, now: datetime, seed: int
) -> None:
    decision = decide(policy, error, delivery=history, now=now, random=Random(seed))

    assert decision.why
    if isinstance(decision.outcome, RetryLater):
        assert history.failures < policy.max_retries
        assert policy.classify(error).retry
        assert decision.outcome.delay is not None
        assert decision.outcome.delay >= timedelta(0)
        assert policy.budget is None or decision.outcome.delay <= policy.budget


@given(policies, deliveries, instants)
def test_decide_start_answers_for_any_history(policy: RetryPolicy, history: Delivery, now: datetime) -> None:
    decision = start(policy, history, now=now)

    assert decision is None or isinstance(decision.outcome, GiveUp)


@given(policies, st.lists(errors, min_size=1), st.none() | st.integers(min_value=1, max_value=5), st.integers())
def test_no_message_gets_more_attempts_than_the_policy_allows(
    policy: RetryPolicy, failing: list[BaseException], allowed: int | None, seed: int
) -> None:
    random, now, made = Random(seed), AT, 0
    given = delivery(attempts_allowed=allowed, first_attempt_at=AT)
    while start(policy, given, now=now) is None:
        made += 1
        error = failing[made % len(failing)]
        decision = decide(policy, error, delivery=given, now=now, random=random)
        if isinstance(decision.outcome, GiveUp):
            break
        assert decision.outcome.delay is not None
        now += decision.outcome.delay
        assert policy.budget is None or now - AT <= policy.budget
        given = given._replace(failures=given.failures + 1)

    assert 1 <= made <= min(policy.max_attempts, allowed or policy.max_attempts)


@pytest.mark.parametrize(
    "policy",
    [
        RetryPolicy.of([0, 5]),
        RetryPolicy(2),
        RetryPolicy(2, jitter="none", budget=60),
        RetryPolicy(2, jitter="none", classify=Classifier(permanent=[ValueError], retryable=[KeyError])),
    ],
    ids=["exact delays", "jitter", "a budget", "rules"],
)
def test_decisions_that_are_remembered_are_those_that_would_be_made_again(policy: RetryPolicy) -> None:
    decisions = Decisions(policy)
    errors = (ValueError("a"), KeyError("b"), TimeoutError(), Limited("7"), RetryLater(3), GiveUp("no"))
    histories = [
        delivery(failures=n, crashes=n % 2, attempts_allowed=allowed) for n in range(4) for allowed in (None, 1)
    ]
    for round_ in range(3):
        for error in (*errors, ExceptionGroup("one", [ValueError("inside")])):
            for history in histories:
                said = decisions.after(error, delivery=history, now=AT, random=Random(round_))
                anew = decide(policy, error, delivery=history, now=AT, random=Random(round_))

                assert (said.why, said.transient) == (anew.why, anew.transient)
                assert type(said.outcome) is type(anew.outcome)
                assert getattr(said.outcome, "delay", None) == getattr(anew.outcome, "delay", None)
                assert getattr(said.outcome, "reason", None) == getattr(anew.outcome, "reason", None)


def test_what_an_exception_was_raised_from_is_looked_at_though_its_class_is_known() -> None:
    policy = RetryPolicy.of([0, 0])
    decisions = Decisions(policy)
    alone, caused = ValueError("alone"), ValueError("caused")
    caused.__cause__ = ConnectionError()

    told = [
        decisions.after(error, delivery=delivery(), now=AT, random=Random(1)).transient
        for error in (alone, caused, alone)
    ]
    assert told == [False, True, False]


def test_no_more_decisions_are_remembered_than_there_is_room_for() -> None:
    decisions = Decisions(RetryPolicy.of([0] * (REMEMBERED + 10)))
    for failures in range(REMEMBERED + 10):
        decision = decisions.after(ValueError(), delivery=delivery(failures=failures), now=AT, random=Random(1))

        assert decision.why.startswith(f"attempt {failures + 1} of")
