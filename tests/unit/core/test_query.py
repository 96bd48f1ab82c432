from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given

from redrive.core.letter import DeadLetter
from redrive.core.life import LetterState
from redrive.core.query import Query, searchable_text
from redrive.core.reason import Reason
from tests.unit.core.letters import AT, a_letter, any_letter

LETTER = a_letter(
    b'{"name": "\xc3\x84nne"}',
    letter_id="l1",
    original_message_id="Orders-42",
    reason=Reason.INVALID,
    error_type="shop.Refused",
    error_code="no_card",
    error_message="The bank said NO",
    fingerprint="f1",
    user_id="u1",
    tenant_id="t1",
    broker="kafka",
    app_version="v2",
    dlq_entry_id="7-0",
)


def test_a_query_that_asks_nothing_matches_everything() -> None:
    assert Query().matches(LETTER)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reason", Reason.INVALID),
        ("queue", "orders"),
        ("error_type", "shop.Refused"),
        ("error_code", "no_card"),
        ("fingerprint", "f1"),
        ("user_id", "u1"),
        ("tenant_id", "t1"),
        ("kind", "message"),
        ("broker", "kafka"),
        ("app_version", "v2"),
        ("dlq_entry_id", "7-0"),
    ],
)
def test_a_field_must_be_equal(name: str, value: Any) -> None:
    other: Any = {"reason": Reason.REJECTED}.get(name, "other")

    assert Query(**{name: value}).matches(LETTER)
    assert not Query(**{name: other}).matches(LETTER)
    assert not Query(**{name: value}).matches(replace(LETTER, **{name: other}))


def test_a_letter_that_no_store_has_seen_is_open() -> None:
    assert Query(states=(LetterState.OPEN,)).matches(LETTER)
    assert not Query(states=(LetterState.RESOLVED,)).matches(LETTER)
    assert Query(states=(LetterState.RESOLVED,)).matches(LETTER, state=LetterState.RESOLVED)
    assert Query(states=(LetterState.PARKED, LetterState.OPEN)).matches(LETTER)


def test_states_are_kept_in_one_order_and_each_once() -> None:
    parked, opened = LetterState.PARKED, LetterState.OPEN

    assert Query(states=(parked, opened, parked)) == Query(states=(opened, parked))


def test_everything_that_is_asked_must_hold() -> None:
    assert Query(user_id="u1", tenant_id="t1").matches(LETTER)
    assert not Query(user_id="u1", tenant_id="t2").matches(LETTER)


def test_the_time_runs_from_the_first_instant_to_before_the_last() -> None:
    moment = timedelta(microseconds=1)

    assert Query(from_at=AT, to_at=AT + moment).matches(LETTER)
    assert not Query(from_at=AT + moment).matches(LETTER)
    assert not Query(to_at=AT).matches(LETTER)


def test_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="from_at"):
        Query(from_at=datetime(2026, 3, 1))  # noqa: DTZ001 - the mistake


@pytest.mark.parametrize("text", ["", "bank said no", "ORDERS-42", "l1", "refused", "Änne", "änne"])
def test_text_is_found_whatever_the_case(text: str) -> None:
    assert Query(text=text).matches(LETTER)


def test_text_that_is_nowhere_is_not_found() -> None:
    assert not Query(text="absent").matches(LETTER)


@given(any_letter())
def test_searchable_text_can_be_kept_by_every_store(letter: DeadLetter) -> None:
    text = searchable_text(letter)

    assert "\x00" not in text
    assert text.encode().decode() == text
