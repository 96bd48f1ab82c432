"""The trail of attempts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.attempt import KEPT, KEPT_IN_ALL, Attempt, Trail, dump_trail, extend_trail, join_trails, load_trail
from tests.unit.core.letters import an_attempt, attempts


@given(st.lists(attempts, max_size=5).map(tuple))
def test_a_trail_comes_back_as_it_was(trail: Trail) -> None:
    assert load_trail(dump_trail(trail)) == trail


def test_the_first_and_the_latest_attempts_are_kept() -> None:
    trail: Trail = ()
    for number in range(1, 41):
        trail = extend_trail(trail, an_attempt(number))

    assert [attempt.number for attempt in trail] == [1, *range(41 - KEPT + 1, 41)]


def test_only_the_last_attempt_is_kept_in_full() -> None:
    trail: Trail = ()
    for number in range(1, 4):
        trail = extend_trail(trail, an_attempt(number, error_message="x" * 5000))

    assert [len(attempt.error_message) > 200 for attempt in trail] == [False, False, True]


@pytest.mark.parametrize("text", ["x" * 5000, "ü" * 5000, "short"])
def test_an_earlier_attempt_takes_about_256_bytes(text: str) -> None:
    attempt = an_attempt(
        3, error_type="shop.orders.OutOfStock", error_message=text, node="web-7d9f", generation=1, crash=True
    )
    row = json.loads(dump_trail((attempt.shortened(),)))[0]

    assert len(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()) <= 256


def test_a_short_attempt_is_left_alone() -> None:
    attempt = an_attempt(error_message="short")

    assert attempt.shortened() is attempt


@pytest.mark.parametrize(
    "raw", [None, b"", b"\xff", b"{", b"null", b"{}", b"[1, null, {}]", b"[" * 100_000, b"9" * 5000]
)
def test_an_unreadable_trail_is_empty(raw: bytes | str | None) -> None:
    assert load_trail(raw) == ()


def test_a_row_that_cannot_be_read_does_not_take_the_others_with_it() -> None:
    rows = json.loads(dump_trail((an_attempt(1), an_attempt(2), an_attempt(3))))
    rows[1]["started_at"] = "yesterday"
    rows[2]["added_in_a_later_version"] = True

    assert [attempt.number for attempt in load_trail(json.dumps(rows))] == [1, 3]


def test_instants_without_a_zone_are_utc() -> None:
    (attempt,) = load_trail(
        '[{"number": 1, "started_at": "2026-03-01T12:00:00", "ended_at": "2026-03-01T12:00:01", "error_type": "X"}]'
    )

    assert attempt == an_attempt(error_type="X")
    assert isinstance(attempt, Attempt)


def test_trails_are_joined_in_order_each_attempt_once() -> None:
    first = tuple(an_attempt(number) for number in (1, 2))
    second = tuple(an_attempt(number, generation=1) for number in (1, 2))

    assert join_trails(first, second) == join_trails(second, first) == (*first, *second)
    assert join_trails((*first, *second), second) == (*first, *second)


def test_a_joined_trail_keeps_the_first_and_the_latest() -> None:
    trail = tuple(an_attempt(number) for number in range(1, 200))
    joined = join_trails(trail[:100], trail[100:])

    assert [attempt.number for attempt in joined] == [1, *range(200 - KEPT_IN_ALL + 1, 200)]
