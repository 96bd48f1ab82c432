from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from redrive.gateway.told import told_by

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def in_seconds(**headers: str) -> float | None:
    told = told_by({name.replace("_", "-"): value for name, value in headers.items()}, now=NOW)
    return None if told is None else told.total_seconds()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("2", 2.0),
        ("1.5", 1.5),
        (" 3 ", 3.0),
        ("0", 0.0),
        ("61", 61.0),
        ("3600", 3600.0),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        ("9" * 500, None),
        (format_datetime(NOW + timedelta(seconds=30), usegmt=True), 30.0),
        (format_datetime(NOW - timedelta(hours=1), usegmt=True), 0.0),
        ("Wed, 99 Nov 9999 99:99:99 GMT", None),
    ],
)
def test_retry_after_is_understood_in_all_its_forms(value: str, told: float | None) -> None:
    assert in_seconds(retry_after=value) == told


def test_a_huge_number_is_no_overflow() -> None:
    assert in_seconds(retry_after="9" * 30) == timedelta.max.total_seconds()


def test_milliseconds_win_over_seconds() -> None:
    assert in_seconds(retry_after_ms="1500", retry_after="9") == 1.5
    assert in_seconds(x_ms_retry_after_ms="250") == 0.25


def test_a_date_is_by_the_servers_clock() -> None:
    server = NOW + timedelta(hours=1)  # which is an hour fast
    asked = format_datetime(server + timedelta(seconds=20), usegmt=True)

    assert in_seconds(retry_after=asked, date=format_datetime(server, usegmt=True)) == 20.0


@pytest.mark.parametrize(
    ("reset", "told"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("20ms", 0.02),
        ("1h2m3.5s", 3723.5),
        ("12", 12.0),
        (str(int(NOW.timestamp()) + 40), 40.0),
        ("2030-01-01T00:00:07Z", 7.0),
        ("2029-01-01T00:00:00Z", 0.0),
        ("junk", None),
        ("", None),
    ],
)
def test_the_reset_of_an_exhausted_limit_counts_without_retry_after(reset: str, told: float | None) -> None:
    assert in_seconds(x_ratelimit_remaining_tokens="0", x_ratelimit_reset_tokens=reset) == told
    assert in_seconds(anthropic_ratelimit_requests_remaining="0", anthropic_ratelimit_requests_reset=reset) == told


def test_the_reset_of_a_limit_with_something_left_does_not_count() -> None:
    assert in_seconds(x_ratelimit_remaining_tokens="9", x_ratelimit_reset_tokens="30s") is None


def test_of_two_exhausted_limits_the_later_reset_counts() -> None:
    told = in_seconds(
        x_ratelimit_remaining_tokens="0",
        x_ratelimit_reset_tokens="30s",
        x_ratelimit_remaining_requests="0",
        x_ratelimit_reset_requests="2s",
    )
    assert told == 30.0
