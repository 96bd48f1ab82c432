from datetime import timedelta
from typing import Any

import pytest

from redrive.core.duration import NOW, Duration, as_duration


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (timedelta(minutes=1), 60),
        (0, 0),
        (30, 30),
        (0.25, 0.25),
        ("30s", 30),
        ("5m", 300),
        ("1.5h", 5400),
        ("250ms", 0.25),
        ("2d", 172800),
        ("7", 7),
        (" 1 s ", 1),
    ],
)
def test_a_duration_is_read_as_people_write_it(given: Duration, seconds: float) -> None:
    assert as_duration(given) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "given",
    [
        *("", "soon", "-1s", "1w", "1s2m", "1e3", "9" * 400, "999999999999d"),
        *(-1, -0.001, float("nan"), float("inf"), 10**400, timedelta(seconds=-1)),
        *(True, None, [], b"30s"),
    ],
)
def test_what_is_no_duration_is_a_value_error(given: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        as_duration(given)


@pytest.mark.parametrize("given", ["3654d", 10**12, timedelta(days=4000)])
def test_a_duration_of_more_than_ten_years_is_refused(given: Duration) -> None:
    with pytest.raises(ValueError, match="expected at most ten years, got"):
        as_duration(given)

    assert as_duration("3650d") == timedelta(days=3650)


def test_now_is_no_delay() -> None:
    assert as_duration(0) == NOW
