"""Instants as text."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.instant import instant_text

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
EAST = timezone(timedelta(hours=2))


@given(st.lists(st.datetimes(timezones=st.sampled_from([UTC, EAST])), min_size=1, max_size=5))
def test_the_text_is_that_of_isoformat(instants: list[datetime]) -> None:
    assert [instant_text(one) for one in instants] == [one.isoformat() for one in instants]


@pytest.mark.parametrize("micros", [0, 1, 999_999, 1_000_000, 1_000_001, -1, -1_000_000, 86_400_000_000])
def test_a_neighbour_of_the_instant_before_has_its_own_text(micros: int) -> None:
    neighbour = NOON + timedelta(microseconds=micros)

    assert [instant_text(NOON), instant_text(neighbour)] == [NOON.isoformat(), neighbour.isoformat()]
