"""The trail of attempts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.attempt import (
    KEPT,
    KEPT_IN_ALL,
    Attempt,
    RowTrail,
    Trail,
    append_attempt,
    close_trail,
    dump_trail,
    extend_trail,
    join_trails,
    load_trail,
    to_rows,
)
from tests.unit.core.letters import AT, an_attempt, attempts


@given(st.lists(attempts, max_size=5).map(tuple))
def test_a_trail_comes_back_as_it_was(trail: Trail) -> None:
    assert load_trail(dump_trail(trail)) == trail


@given(st.lists(attempts, max_size=5).map(tuple))
def test_a_dumped_trail_is_the_json_of_its_rows(trail: Trail) -> None:
    assert json.loads(dump_trail(trail)) == to_rows(trail)


# Long enough to be shortened, or to look like the beginning of a row.
long_texts = st.text(st.sampled_from('x"{ü:\\\ud800'), max_size=200) | st.just('{"number":1,"started_at"')
long_attempts = st.builds(
    an_attempt, st.integers(1, 99), error_message=long_texts, error_type=long_texts, node=st.sampled_from(["", "web-1"])
)


@given(st.lists(long_attempts, max_size=KEPT + 3))
def test_an_encoded_trail_grows_as_a_decoded_one_does(given_attempts: list[Attempt]) -> None:
    trail: Trail = ()
    raw = b""
    for attempt in given_attempts:
        closed = close_trail(raw, attempt)
        trail, raw = extend_trail(trail, attempt), append_attempt(raw, attempt)

        assert load_trail(raw) == trail == closed
        assert dump_trail(trail) == dump_trail(closed) == raw


@pytest.mark.parametrize("ensure_ascii", [True, False])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_trail_that_somebody_else_encoded_grows_too(*, ensure_ascii: bool, separators: tuple[str, str]) -> None:
    trail = (an_attempt(1, error_message="für"), an_attempt(2, error_message="x" * 5000))
    raw = json.dumps(to_rows(trail), ensure_ascii=ensure_ascii, separators=separators).encode()

    assert load_trail(append_attempt(raw, an_attempt(3))) == extend_trail(trail, an_attempt(3))


@pytest.mark.parametrize("raw", [b"[]", b"\xff", b"{", b"null", b"[1, null, {}]", b'[{"number":'])
def test_an_unreadable_trail_begins_again(raw: bytes) -> None:
    assert load_trail(append_attempt(raw, an_attempt(3))) == (an_attempt(3),)


def test_a_closed_trail_is_a_trail_like_any_other() -> None:
    trail = (an_attempt(1), an_attempt(2), an_attempt(3))
    closed = close_trail(dump_trail(trail[:2]), trail[2])

    assert closed == trail
    assert trail == closed
    assert closed != trail[:2]
    assert closed != "a trail"
    assert (len(closed), bool(closed), closed[-1], closed[0], closed[1:]) == (3, True, trail[2], trail[0], trail[1:])
    assert (*closed, an_attempt(4)) == (*trail, an_attempt(4))
    assert repr(closed) == repr(trail)


def test_a_trail_in_rows_is_a_trail_like_any_other() -> None:
    trail = (an_attempt(1), an_attempt(2), an_attempt(3))
    unread = RowTrail([*to_rows(trail[:2]), "no row", {"number": 7}, *to_rows(trail[2:])])

    assert unread == trail
    assert trail == unread
    assert unread == close_trail(dump_trail(trail[:2]), trail[2])
    assert unread != trail[:2]
    assert (len(unread), bool(unread), unread[-1], unread[1:]) == (3, True, trail[2], trail[1:])
    assert repr(unread) == repr(trail)
    assert (len(RowTrail([])), bool(RowTrail([1]))) == (0, False)
    assert load_trail(dump_trail(unread)) == trail


def test_what_is_made_of_a_closed_trail_is_dumped_as_it_is() -> None:
    closed = close_trail(dump_trail((an_attempt(1),)), an_attempt(2))

    assert load_trail(dump_trail(closed[1:])) == (an_attempt(2),)
    assert load_trail(dump_trail((*closed, an_attempt(3)))) == (an_attempt(1), an_attempt(2), an_attempt(3))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        dump_trail((an_attempt(1, ended_at=AT), an_attempt(2))),
        json.dumps(to_rows((an_attempt(1, ended_at=AT),))).encode(),
        b'[{"number":1,"started_at":"2026-03-01T12:00:00","ended_at":"2026-03-01T12:00:00","error_type":"X"}]',
        b'[{"number":1,"ended_at":"yesterday"}]',
    ],
    ids=["none", "ours", "with spaces", "without a zone", "unreadable"],
)
def test_a_closed_trail_tells_when_its_first_attempt_ended(raw: bytes) -> None:
    assert close_trail(raw, an_attempt(3, ended_at=AT)).first_ended_at == AT


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
