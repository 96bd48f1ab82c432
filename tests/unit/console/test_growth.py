from datetime import UTC, datetime, timedelta

import pytest

from redrive.console.growth import growth
from redrive.core.stored import IncidentRow

NOW = datetime(2026, 3, 1, 12, 15, tzinfo=UTC)


def incident(*, first_ago: timedelta = timedelta(days=2), last_ago: timedelta = timedelta(minutes=1)) -> IncidentRow:
    return IncidentRow(
        incident_id="f",
        fingerprint="f",
        error_type="KeyError",
        error_message="",
        open=1,
        total=1234,
        first_at=NOW - first_ago,
        last_at=NOW - last_ago,
        queues=["orders"],
    )


def test_within_its_first_hour_an_incident_is_new() -> None:
    assert growth(incident(first_ago=timedelta(minutes=59)), [0, 1234], now=NOW)[:2] == ("new", "1,234 so far")


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        ((40, 40, 10), ("steady", "about 40 an hour")),  # the hour has only begun
        ((8, 40, 50), ("growing", "about 80 an hour, up from 16")),
        ((100, 40, 0), ("slowing", "about 30 an hour, down from 85")),
        ((5,), ("growing", "about 5 an hour, up from 0")),
    ],
)
def test_the_last_hour_is_compared_with_the_one_before_it(hours: tuple[int, ...], said: tuple[str, str]) -> None:
    assert growth(incident(), hours, now=NOW)[:2] == said


def test_one_that_nothing_was_heard_of_is_quiet() -> None:
    found = growth(incident(last_ago=timedelta(hours=5)), [9, 0, 0], now=NOW)

    assert found[:2] == ("quiet", "for 5h")


def test_new_comes_before_growing_and_growing_before_the_rest() -> None:
    new = growth(incident(first_ago=timedelta(0)), [1], now=NOW)
    grows = growth(incident(), [1, 1, 9], now=NOW)
    calm = growth(incident(), [9, 1, 0], now=NOW)

    assert new.rank < grows.rank < calm.rank
