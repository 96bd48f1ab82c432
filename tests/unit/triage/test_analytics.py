from datetime import timedelta
from typing import Any

import pytest

from redrive.core.errors import ConfigError
from redrive.core.reason import Reason
from redrive.core.stored import Dimension
from redrive.triage import analytics
from tests.unit.triage.bench import Bench


async def die(bench: Bench, *error_types: str, **changes: Any) -> None:
    for number, error_type in enumerate(error_types):
        prefix = f"{bench.clock.now():%H}-{number}-{changes.get('queue', '')}"
        await bench.collect(1, prefix=prefix, error_type=error_type, **changes)


async def test_deaths_are_counted_by_hour_and_name() -> None:
    bench = Bench()
    begin = bench.clock.now()
    await die(bench, "KeyError", "KeyError", "OSError")
    bench.clock.advance("2h")
    await die(bench, "OSError")
    bench.clock.advance("1m")

    found = await analytics.trend(bench.desk, "error_type")

    assert (found.total, found.totals, found.others) == (4, {"KeyError": 2, "OSError": 2}, 0)
    assert [(hour.at - begin, hour.total, hour.counts) for hour in found.hours] == [
        (timedelta(0), 3, {"KeyError": 2, "OSError": 1}),
        (timedelta(hours=2), 1, {"OSError": 1}),
    ]
    assert (begin - found.since, found.until - begin) == (timedelta(hours=22), timedelta(hours=2, minutes=1))


@pytest.mark.parametrize(
    ("by", "totals"),
    [
        ("queue", {"orders": 2, "mails": 1}),
        ("error_code", {"no_customer": 3}),
        ("reason", {"rejected": 3}),
    ],
)
async def test_deaths_are_counted_by_each_dimension(by: Dimension, totals: dict[str, int]) -> None:
    bench = Bench()
    same: dict[str, Any] = {"reason": Reason.REJECTED, "error_code": "no_customer"}
    await die(bench, "KeyError", "OSError", queue="orders", **same)
    await die(bench, "KeyError", queue="mails", **same)
    bench.clock.advance("1m")

    assert (await analytics.trend(bench.desk, by)).totals == totals


async def test_one_queue_alone_can_be_asked_for() -> None:
    bench = Bench()
    await die(bench, "KeyError", queue="orders")
    await die(bench, "KeyError", queue="mails")
    bench.clock.advance("1m")

    assert (await analytics.trend(bench.desk, "error_type", queue="mails")).total == 1


async def test_names_beyond_the_top_are_counted_together() -> None:
    bench = Bench()
    await die(bench, "A", "A", "B", "C")
    bench.clock.advance("1m")

    found = await analytics.trend(bench.desk, "error_type", top=1)

    assert (found.totals, found.others, found.total) == ({"A": 2}, 2, 4)
    assert [(hour.counts, hour.others) for hour in found.hours] == [({"A": 2}, 2)]


async def test_the_hour_in_which_the_time_begins_is_counted_whole() -> None:
    bench = Bench()
    bench.clock.advance("10m")
    await die(bench, "KeyError")
    bench.clock.advance("50m")

    found = await analytics.trend(bench.desk, "reason", since=bench.clock.now() - timedelta(minutes=20))

    assert (found.total, found.since.minute) == (1, 0)


async def test_a_time_that_cannot_be_answered_is_refused() -> None:
    bench = Bench()
    now = bench.clock.now()

    with pytest.raises(ConfigError, match="expected an instant before"):
        await analytics.trend(bench.desk, "reason", since=now, until=now)
    with pytest.raises(ConfigError, match="at most 31 days"):
        await analytics.trend(bench.desk, "reason", since=now - timedelta(days=32))
