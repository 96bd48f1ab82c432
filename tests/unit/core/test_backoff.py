from datetime import timedelta
from itertools import pairwise
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redrive.core.backoff import (
    LONGEST,
    Additive,
    AnyJitter,
    Backoff,
    Constant,
    Exponential,
    Jitter,
    Table,
    delay_range,
    draw_delay,
)
from redrive.core.errors import ConfigError

ZERO = timedelta(0)

delays = st.timedeltas(min_value=ZERO, max_value=LONGEST)
attempts = st.integers(min_value=1, max_value=5000)
seeds = st.integers().map(Random)


@st.composite
def exponentials(draw: st.DrawFn) -> Exponential:
    initial, cap = sorted((draw(delays), draw(delays)))
    return Exponential(initial, multiplier=draw(st.floats(min_value=1, max_value=1000)), cap=cap)


backoffs = st.one_of(
    exponentials(),
    st.lists(delays, min_size=1, max_size=8).map(Table),
    delays.map(Constant),
)
jitters = st.one_of(st.sampled_from(Jitter), delays.map(Additive))


def seconds(backoff: Backoff, *numbers: int) -> list[float]:
    return [backoff.delay(n).total_seconds() for n in numbers]


def test_exponential_doubles_from_one_second_to_thirty_by_default() -> None:
    assert seconds(Exponential(), 1, 2, 3, 4, 5, 6, 7) == [1, 2, 4, 8, 16, 30, 30]


def test_a_table_repeats_its_last_value() -> None:
    assert seconds(Table([1, "5s", timedelta(minutes=1)]), 1, 2, 3, 4, 2000) == [1, 5, 60, 60, 60]


def test_a_constant_is_the_same_after_every_attempt() -> None:
    assert seconds(Constant("250ms"), 1, 2, 2000) == [0.25, 0.25, 0.25]


def test_durations_are_kept_as_timedeltas() -> None:
    assert Exponential("1s", cap="1m") == Exponential(1, multiplier=2.0, cap=timedelta(seconds=60))
    assert Table([1, "2s"]).delays == (timedelta(seconds=1), timedelta(seconds=2))


@pytest.mark.parametrize("backoff", [Exponential(), Table([1]), Constant(1)])
def test_attempts_are_numbered_from_one(backoff: Backoff) -> None:
    with pytest.raises(ValueError, match="numbered from 1, got 0"):
        backoff.delay(0)


def test_every_mistake_of_an_exponential_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        Exponential(-1, multiplier=0.5, cap="soon")

    assert [mistake.partition(":")[0] for mistake in caught.value.mistakes] == ["initial", "cap", "multiplier"]


def test_every_wrong_delay_of_a_table_is_reported_by_its_index() -> None:
    with pytest.raises(ConfigError) as caught:
        Table([1, "x", -2, 4])

    assert [mistake.partition(":")[0] for mistake in caught.value.mistakes] == ["delays[1]", "delays[2]"]


@pytest.mark.parametrize("multiplier", [True, "2", None, 0, -1, float("nan"), float("inf"), 10**400])
def test_a_multiplier_that_is_no_growth_is_a_mistake(multiplier: float) -> None:
    with pytest.raises(ConfigError, match="multiplier: expected a number from 1 to 1000"):
        Exponential(multiplier=multiplier)


@pytest.mark.parametrize("delays", [[], "123", b"45", 6])
def test_a_table_needs_a_sequence_with_something_in_it(delays: list[int]) -> None:
    with pytest.raises(ConfigError, match="delays: expected"):
        Table(delays)


def test_a_cap_below_the_first_delay_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="cap: expected at least initial"):
        Exponential(60)


@pytest.mark.parametrize("make", [Exponential, Constant, Additive])
def test_a_delay_of_more_than_a_year_is_a_mistake(make: type[Constant]) -> None:
    with pytest.raises(ConfigError, match="expected at most 365 days"):
        make("400d")


def test_a_delay_too_long_for_any_calendar_is_a_mistake_and_no_overflow() -> None:
    with pytest.raises(ConfigError, match="every: expected seconds"):
        Constant("9" * 400 + "d")


@pytest.mark.parametrize(
    ("jitter", "expected"),
    [
        (Jitter.NONE, (4, 4)),
        (Jitter.FULL, (0, 4)),
        (Jitter.EQUAL, (2, 4)),
        (Jitter.DECORRELATED, (1, 6)),
        (Additive(0.5), (3.5, 4.5)),
        (Additive(10), (0, 14)),
    ],
)
def test_each_jitter_has_its_range(jitter: AnyJitter, expected: tuple[float, float]) -> None:
    low, high = delay_range(Exponential(), jitter, n=3)

    assert (low.total_seconds(), high.total_seconds()) == expected


def test_the_range_is_cut_at_the_cap_so_that_no_crowd_gathers_there() -> None:
    random = Random(1)
    drawn = {draw_delay(Exponential(), Additive(5), n=9, random=random) for _ in range(100)}

    assert delay_range(Exponential(), Additive(5), n=9) == (timedelta(seconds=25), timedelta(seconds=30))
    assert len(drawn) == 100


@given(backoffs, jitters, attempts, seeds)
@example(Exponential(), Jitter.FULL, 2000, Random(0))
@example(Exponential("1ms", multiplier=1000, cap="365d"), Jitter.DECORRELATED, 2000, Random(0))
def test_a_drawn_delay_is_never_negative_and_never_above_the_cap(
    backoff: Backoff, jitter: AnyJitter, n: int, random: Random
) -> None:
    low, high = delay_range(backoff, jitter, n=n)
    drawn = draw_delay(backoff, jitter, n=n, random=random)

    assert ZERO <= low <= drawn <= high
    assert backoff.cap is None or high <= backoff.cap


@given(exponentials(), st.lists(attempts, min_size=2).map(sorted))
def test_an_exponential_never_shrinks(backoff: Exponential, numbers: list[int]) -> None:
    assert all(backoff.delay(n) <= backoff.delay(m) for n, m in pairwise(numbers))
    assert backoff.initial <= backoff.delay(numbers[0])


@given(exponentials(), jitters, st.lists(attempts, min_size=2).map(sorted))
def test_the_range_of_an_exponential_only_moves_up(backoff: Exponential, jitter: AnyJitter, numbers: list[int]) -> None:
    ranges = [delay_range(backoff, jitter, n=n) for n in numbers]

    assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(ranges))


@given(backoffs, jitters, attempts, seeds, delays)
def test_a_told_delay_is_a_floor(backoff: Backoff, jitter: AnyJitter, n: int, random: Random, told: timedelta) -> None:
    low, high = delay_range(backoff, jitter, n=n)
    drawn = draw_delay(backoff, jitter, n=n, random=random, told=told)

    assert drawn >= max(low, told)
    assert drawn <= max(high, told + max(high - low, told / 4))


def test_jitter_comes_on_top_of_a_told_delay() -> None:
    random = Random(1)
    told = timedelta(seconds=600)
    drawn = [draw_delay(Exponential(), Jitter.FULL, n=1, random=random, told=told) for _ in range(1000)]

    assert told <= min(drawn)
    assert max(drawn) <= told * 1.25
    assert max(drawn) - min(drawn) > timedelta(seconds=120)


def test_without_jitter_a_told_delay_is_kept_exactly() -> None:
    told = timedelta(seconds=10)

    assert draw_delay(Table([1, 20]), Jitter.NONE, n=1, random=Random(1), told=told) == told
    assert draw_delay(Table([1, 20]), Jitter.NONE, n=2, random=Random(1), told=told).total_seconds() == 20


@given(backoffs, jitters, attempts, st.integers())
def test_the_same_random_draws_the_same_delay_with_one_draw(
    backoff: Backoff, jitter: AnyJitter, n: int, seed: int
) -> None:
    once, again = Random(seed), Random(seed)

    assert draw_delay(backoff, jitter, n=n, random=once) == draw_delay(backoff, jitter, n=n, random=again)
    again = Random(seed)
    again.random()
    assert once.getstate() == again.getstate()
